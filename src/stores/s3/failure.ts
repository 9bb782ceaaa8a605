import { type ErrorCode, LeaseholdError } from "../../lease/errors.js";
import { S3Refusal } from "./client.js";

/** What S3's words mean here, and then its statuses. What is not listed passes by itself. */
const codes: Readonly<Record<string, readonly [ErrorCode, string?]>> = {
  NoSuchBucket: ["STORE_UNAVAILABLE", "there is no such bucket"],
  QuotaExceeded: ["STORE_FULL"],
  EntityTooLarge: ["STORE_FULL"],
  PermanentRedirect: ["STORE_UNAVAILABLE", "the bucket is in another region; add ?region=…"],
  AuthorizationHeaderMalformed: ["STORE_UNAVAILABLE", "the bucket may be in another region; add ?region=…"],
  RequestTimeTooSkewed: ["STORE_PERMISSION", "this machine's system clock is wrong"],
  401: ["STORE_PERMISSION"],
  403: [
    "STORE_PERMISSION",
    "reading, writing and listing (GetObject, PutObject, ListBucket) must be allowed",
  ],
  405: ["STORE_READ_ONLY"],
  501: ["STORE_UNFIT"],
  507: ["STORE_FULL"],
};

export function s3Failure(name: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error;
  const [code, hint] =
    error instanceof S3Refusal
      ? (codes[error.word] ?? codes[error.status] ?? (["STORE_UNAVAILABLE"] as const))
      : (["STORE_UNAVAILABLE"] as const);
  const text = textOf(error);
  return new LeaseholdError(code, `${name}: ${hint === undefined ? text : `${hint} (${text})`}`);
}

/** `fetch failed` says nothing; what made it fail does. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(textOf).join("; ");
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? textOf(error.cause) : error.message;
}
