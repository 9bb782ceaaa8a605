import type { LeaseholdError } from "../../lease/errors.js";
import { type Meaning, serverFailure } from "../common/server-failure.js";
import { S3Refusal } from "./client.js";

/** What S3's words mean here, and then its statuses. What is not listed passes by itself. */
const meanings: Readonly<Record<string, Meaning>> = {
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
  return serverFailure(name, error, () =>
    error instanceof S3Refusal ? (meanings[error.word] ?? meanings[error.status]) : undefined,
  );
}
