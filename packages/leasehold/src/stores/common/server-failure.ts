import { type ErrorCode, LeaseholdError } from "../../lease/errors.js";

/** The meaning of a server's error, with a hint if the server's own message gives none. */
export type Meaning = readonly [code: ErrorCode, hint?: string];

/** An error without a known meaning is transient, or needs a restart. */
const retryable: Meaning = ["STORE_UNAVAILABLE"];

/** The error of a store on a server, with its name. An error that has a `LeaseholdError` code keeps it. */
export function serverFailure(
  name: string,
  error: unknown,
  meaningOf: (text: string) => Meaning | undefined,
): LeaseholdError {
  if (error instanceof LeaseholdError) return error;
  const text = textOf(error);
  const [code, hint] = meaningOf(text) ?? retryable;
  return new LeaseholdError(code, `${name}: ${hint === undefined ? text : `${hint} (${text})`}`);
}

/**
 * If a connection was refused at several addresses, the error has no message; for `fetch failed` only the
 * cause is informative.
 */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join("; ");
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? textOf(error.cause) : error.message;
}
