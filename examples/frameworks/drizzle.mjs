// Migrations of Drizzle when a process starts, with the lease in the same database. Drizzle has no lock of
// its own: without the lease, two processes that start together both migrate, and one fails.
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { open } from "leasehold";
import pg from "pg";

const address = process.env.DATABASE_URL ?? "postgres://127.0.0.1/app";
const leases = await open(`delta+${address}`);
const pool = new pg.Pool({ connectionString: address });
const migrationsFolder = new URL("drizzle", import.meta.url).pathname;
try {
  await leases.using("migrations/drizzle", { wait: "5m" }, () =>
    migrate(drizzle(pool), { migrationsFolder }),
  );
  console.log("migrated");
} finally {
  await pool.end();
  await leases.close();
}
