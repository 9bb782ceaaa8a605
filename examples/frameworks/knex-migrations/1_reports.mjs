export const config = { transaction: false }; // required by `create index concurrently`, for example

export async function up(db) {
  console.log("migrating");
  await db.raw("create table if not exists knex_reports (id serial primary key)");
  await db.raw("select pg_sleep(?)", [Number(process.env.WORK_MS ?? 200) / 1_000]);
  await db("knex_reports").insert({});
}

export async function down(db) {
  await db.schema.dropTable("knex_reports");
}
