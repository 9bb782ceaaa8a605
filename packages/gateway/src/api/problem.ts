import { type ErrorCode, LeaseholdError, errorCodes } from "leasehold/common";
import { type GatewayCode, GatewayError, gatewayCodes } from "../sessions/errors.js";

/** A refusal at the level of HTTP, such as an unknown path or a body that is too large. */
export class HttpRefusal extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = "HttpRefusal";
    this.status = status;
    this.headers = headers;
  }
}

/** A problem of RFC 9457, with the library's error code. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode | GatewayCode | "HTTP" | "INTERNAL";
  readonly detail: string;
}

const statuses: Readonly<Partial<Record<ErrorCode | GatewayCode, number>>> = {
  LEASE_LOST: 410,
  SESSION_GONE: 410,
  KEY_REUSED: 422,
  LEASE_HELD: 409,
  TIMEOUT: 409,
  NOT_WAITING: 409,
  LEASE_BROKEN: 409,
  NO_QUORUM: 503,
  CLOCK_SKEW: 503,
  OVERLOADED: 503,
  UNREACHABLE: 503,
  CLOSED: 503,
  STORE_UNAVAILABLE: 503,
  RESOURCES_FULL: 429,
  TOO_MANY_WAITERS: 429,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  INVALID_NAME: 400,
  INVALID_DURATION: 400,
  TTL_OUT_OF_RANGE: 400,
  INVALID_CONFIG: 400,
  WATCH_TOO_WIDE: 400,
  UNSUPPORTED: 501,
};

/** The answer to a request that failed. The answer to a fault of the gateway itself reveals no internals. */
export function problemOf(error: unknown): Problem {
  if (error instanceof GatewayError) {
    const { code, message } = error;
    return {
      type: typeOf(code),
      title: gatewayCodes[code],
      status: statuses[code] ?? 500,
      code,
      detail: message,
    };
  }
  if (error instanceof LeaseholdError) {
    const { code, message } = error;
    return {
      type: typeOf(code),
      title: errorCodes[code],
      status: statuses[code] ?? 500,
      code,
      detail: message,
    };
  }
  if (error instanceof HttpRefusal) {
    const { status, message } = error;
    return {
      type: "about:blank",
      title: "The request cannot be served.",
      status,
      code: "HTTP",
      detail: message,
    };
  }
  const title = "The gateway has failed to answer.";
  return { type: "about:blank", title, status: 500, code: "INTERNAL", detail: "see the gateway's log" };
}

const typeOf = (code: string): string => `urn:leasehold:error:${code}`;
