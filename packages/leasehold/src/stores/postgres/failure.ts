import type { LeaseholdError } from "../../lease/errors.js";
import { errnoOf } from "../common/io-error.js";
import { type Meaning, serverFailure } from "../common/server-failure.js";

/**
 * What the beginnings of PostgreSQL's error codes (SQLSTATE) mean here. What is not listed passes by itself
 * or with a restart.
 */
const meanings: readonly (readonly [string, Meaning])[] = [
  ["28", ["STORE_PERMISSION"]],
  ["42501", ["STORE_PERMISSION"]],
  ["25006", ["STORE_READ_ONLY"]],
  ["53100", ["STORE_FULL"]],
  ["42P01", ["STORE_UNAVAILABLE", "its table is gone; opened anew, it is made again"]],
  ["42883", ["STORE_UNFIT", "it has not all the functions that a PostgreSQL server has"]],
  ["0A000", ["STORE_UNFIT"]],
];

export function postgresFailure(name: string, error: unknown): LeaseholdError {
  const state = sqlStateOf(error);
  return serverFailure(name, error, (text) => {
    // Without a password it is `pg` that gives up, before the server could refuse.
    if (text.startsWith("SASL")) return ["STORE_PERMISSION"];
    return meanings.find(([start]) => state.startsWith(start))?.[1];
  });
}

export function sqlStateOf(error: unknown): string {
  return errnoOf(error);
}
