import { LeaseholdError } from "leasehold/common";
import { escaped, xmlHead } from "../webdav/xml.js";
import { Refusal } from "../webdav/refusal.js";

/** S3's error codes and their statuses. */
const statuses = {
  AccessDenied: 403,
  AuthorizationHeaderMalformed: 400,
  AuthorizationQueryParametersError: 400,
  BadDigest: 400,
  BucketAlreadyOwnedByYou: 409,
  BucketNotEmpty: 409,
  EntityTooLarge: 400,
  EntityTooSmall: 400,
  IncompleteBody: 400,
  InternalError: 500,
  InvalidAccessKeyId: 403,
  InvalidArgument: 400,
  InvalidBucketName: 400,
  InvalidDigest: 400,
  InvalidPart: 400,
  InvalidPartOrder: 400,
  InvalidRange: 416,
  InvalidRequest: 400,
  KeyConflict: 409,
  KeyTooLongError: 400,
  MalformedXML: 400,
  MetadataTooLarge: 400,
  MethodNotAllowed: 405,
  MissingContentLength: 411,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  NotImplemented: 501,
  NotModified: 304,
  PreconditionFailed: 412,
  QuotaExceeded: 507,
  RequestTimeTooSkewed: 403,
  SignatureDoesNotMatch: 403,
  SlowDown: 503,
  XAmzContentSHA256Mismatch: 400,
} as const;

export type S3Code = keyof typeof statuses;

/** Ends a request with one of S3's errors. */
export class S3Error extends Error {
  readonly code: S3Code;

  constructor(code: S3Code, message: string) {
    super(message);
    this.name = "S3Error";
    this.code = code;
  }

  get status(): number {
    return statuses[this.code];
  }

  /** The body of the answer. */
  xml(resource: string, requestId: string): string {
    const { code, message } = this;
    const fields = { Code: code, Message: message, Resource: resource, RequestId: requestId };
    const inside = Object.entries(fields).map(([name, text]) => `<${name}>${escaped(text)}</${name}>`);
    return `${xmlHead}<Error>${inside.join("")}</Error>\n`;
  }
}

const codes: Readonly<Record<string, S3Code>> = {
  FILE_NOT_FOUND: "NoSuchKey",
  FILE_EXISTS: "KeyConflict",
  FILE_CHANGED: "PreconditionFailed",
  INVALID_PATH: "InvalidArgument",
  INVALID_RANGE: "MetadataTooLarge",
  STORE_FULL: "QuotaExceeded",
  QUOTA_EXCEEDED: "QuotaExceeded",
  NO_QUORUM: "SlowDown",
  UNREACHABLE: "SlowDown",
  OVERLOADED: "SlowDown",
  CLOSED: "SlowDown",
  TIMEOUT: "SlowDown",
  UNSUPPORTED: "InvalidRequest",
  PERMISSION_DENIED: "AccessDenied",
};

/** What a client is told about an error; undefined for a fault of this server. */
export function s3ErrorOf(error: unknown): S3Error | undefined {
  if (error instanceof S3Error) return error;
  if (error instanceof Refusal) {
    const { status, message } = error;
    const code = status === 416 ? "InvalidRange" : status === 403 ? "AccessDenied" : "SlowDown";
    return new S3Error(code, message);
  }
  if (!(error instanceof LeaseholdError)) return undefined;
  return new S3Error(codes[error.code] ?? "InternalError", `${error.code}: ${error.message}`);
}
