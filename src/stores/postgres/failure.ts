import { type ErrorCode, LeaseholdError } from "../../lease/errors.js";

/**
 * What the beginnings of PostgreSQL's error codes (SQLSTATE) mean here. What is not listed passes by itself
 * or with a restart.
 */
const codes: readonly (readonly [string, ErrorCode, string?])[] = [
  ["28", "STORE_PERMISSION"],
  ["42501", "STORE_PERMISSION"],
  ["25006", "STORE_READ_ONLY"],
  ["53100", "STORE_FULL"],
  ["42P01", "STORE_UNAVAILABLE", "its table is gone; opened anew, it is made again"],
  ["42883", "STORE_UNFIT", "it has not all the functions that a PostgreSQL server has"],
  ["0A000", "STORE_UNFIT"],
];

export function postgresFailure(name: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error;
  const text = textOf(error);
  const state = sqlStateOf(error);
  const [, code, hint] = codes.find(([start]) => state.startsWith(start)) ?? [
    undefined,
    // Without a password it is `pg` that gives up, before the server could refuse.
    text.startsWith("SASL") ? ("STORE_PERMISSION" as const) : ("STORE_UNAVAILABLE" as const),
  ];
  return new LeaseholdError(code, `${name}: ${hint === undefined ? text : `${hint} (${text})`}`);
}

export function sqlStateOf(error: unknown): string {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** A connection that was refused at several addresses is an error without a message of its own. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
