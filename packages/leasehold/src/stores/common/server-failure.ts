import { type ErrorCode, LeaseholdError } from "../../lease/errors.js";

/** What a server's error means here, and what to do about it where its own words do not say so. */
export type Meaning = readonly [code: ErrorCode, hint?: string];

/** What has no meaning of its own passes by itself, or with a restart. */
const retryable: Meaning = ["STORE_UNAVAILABLE"];

/** The server's error as the store's, with its name. Errors that have a code of ours keep it. */
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
 * A connection that was refused at several addresses is an error without a message of its own; and `fetch
 * failed` says nothing, but what made it fail does.
 */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join("; ");
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? textOf(error.cause) : error.message;
}
