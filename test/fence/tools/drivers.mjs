/** Drivers of databases that have a lock of their own. */
export { default as mysql } from "mysql2/promise";
