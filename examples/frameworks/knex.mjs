// Migrations of Knex when a process starts, with the lease in the same database. A process that dies in a
// migration without a transaction leaves Knex' own lock behind, until `migrate:unlock` is run. Only the
// holder of the lease migrates, so a lock that it finds was left by a dead process.
import knex from "knex";
import { open } from "leasehold";

const address = process.env.DATABASE_URL ?? "postgres://127.0.0.1/app";
const leases = await open(`delta+${address}`);
const db = knex({
  client: "pg",
  connection: address,
  migrations: {
    directory: new URL("knex-migrations", import.meta.url).pathname,
    loadExtensions: [".mjs"],
  },
});
try {
  await leases.using("migrations/knex", { wait: "5m" }, async (lease) => {
    await db.migrate.forceFreeMigrationsLock();
    lease.assertHeld(1_000);
    const [batch, names] = await db.migrate.latest();
    console.log(`batch ${batch}: ${names.length} migrations`);
  });
} finally {
  await db.destroy();
  await leases.close();
}
