import { LeaseholdError } from "../../lease/errors.js";

const schemaDefault = "leasehold";
const portDefault = "5432";

export interface PostgresAddress {
  /** For messages: no credentials. */
  readonly name: string;
  /**
   * The address for `pg`, which takes missing parts from `.pgpass` and the `PG…` variables. It may contain a
   * password, so it is never shown.
   */
  readonly connectionString: string;
  readonly schema: string;
}

/**
 * Parses `postgres://user@host:port/database?schema=leasehold`, with any other parameters that `pg` supports
 * (`sslmode`, `sslrootcert`, …).
 *
 * @throws LeaseholdError `INVALID_URL`
 */
export function parsePostgresUrl(
  url: URL,
  environment: Readonly<Record<string, string | undefined>>,
): PostgresAddress {
  const schema = url.searchParams.get("schema") ?? schemaDefault;
  if (!["postgres:", "postgresql:"].includes(url.protocol) || !/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new LeaseholdError(
      "INVALID_URL",
      "the address of a PostgreSQL store is postgres://user@host:port/database?schema=name; " +
        "a schema's name has lower-case letters, digits and underscores",
    );
  }
  const full = new URL(url);
  full.searchParams.delete("schema");
  if (full.hostname !== "") {
    full.username ||= encodeURIComponent(environment["PGUSER"] ?? "");
    full.password ||= encodeURIComponent(environment["PGPASSWORD"] ?? "");
  }
  const place = `${url.hostname}:${url.port === "" ? portDefault : url.port}${url.pathname}`;
  return {
    name: `postgres://${place}${schema === schemaDefault ? "" : `?schema=${schema}`}`,
    connectionString: full.href,
    schema,
  };
}
