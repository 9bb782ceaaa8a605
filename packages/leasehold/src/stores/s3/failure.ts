import type { LeaseholdError } from "../../lease/errors.js";
import { type Meaning, serverFailure } from "../common/server-failure.js";
import { S3Refusal } from "./client.js";

/** The meanings of S3's error codes, then of HTTP statuses. Any other error is transient. */
const meanings: Readonly<Record<string, Meaning>> = {
  NoSuchBucket: ["STORE_UNAVAILABLE", "the bucket does not exist"],
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
  return serverFailure(name, error, () =>
    error instanceof S3Refusal ? (meanings[error.word] ?? meanings[error.status]) : undefined,
  );
}
