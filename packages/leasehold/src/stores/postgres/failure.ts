import type { LeaseholdError } from "../../lease/errors.js";
import { errnoOf } from "../common/io-error.js";
import { type Meaning, serverFailure } from "../common/server-failure.js";

/**
 * The meanings of PostgreSQL's error codes (SQLSTATE), by their first characters. Any other error is
 * transient or needs a restart.
 */
const meanings: readonly (readonly [string, Meaning])[] = [
  ["28", ["STORE_PERMISSION"]],
  ["42501", ["STORE_PERMISSION"]],
  ["25006", ["STORE_READ_ONLY"]],
  ["53100", ["STORE_FULL"]],
  ["42P01", ["STORE_UNAVAILABLE", "its table is gone; reopening the store creates it again"]],
  ["42883", ["STORE_UNFIT", "it lacks some functions of a PostgreSQL server"]],
  ["0A000", ["STORE_UNFIT"]],
];

export function postgresFailure(name: string, error: unknown): LeaseholdError {
  const state = sqlStateOf(error);
  return serverFailure(name, error, (text) => {
    // Without a password, `pg` itself gives up before the server can refuse.
    if (text.startsWith("SASL")) return ["STORE_PERMISSION"];
    return meanings.find(([start]) => state.startsWith(start))?.[1];
  });
}

export function sqlStateOf(error: unknown): string {
  return errnoOf(error);
}
