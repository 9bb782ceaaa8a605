/** Drivers of databases that have a lock of their own. */
export { default as mysql } from "mysql2/promise";

/** Databases of SQLite by driver, as this Node and what is installed have them. */
export const sqlite = {};
await import("node:sqlite").then(
  ({ DatabaseSync }) => (sqlite["node:sqlite"] = (path) => new DatabaseSync(path)),
  () => undefined,
);
// Not in the lock, since it is compiled: `npm install --no-save --prefix test/fence/tools better-sqlite3`.
await import("better-sqlite3")
  .then(
    ({ default: Database }) => {
      // Throws if it was compiled for another line of Node.
      new Database(":memory:").close();
      sqlite["better-sqlite3"] = (path) => new Database(path);
    },
    () => undefined,
  )
  .catch(() => undefined);
