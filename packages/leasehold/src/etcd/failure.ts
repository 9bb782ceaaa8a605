import type { ServiceError } from "@grpc/grpc-js";
import { formatDuration } from "../lease/duration.js";
import { type ErrorCode, LeaseholdError } from "../lease/errors.js";

/** The gRPC status codes that matter here. */
const grpcCode = {
  invalidArgument: 3,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** The longest part of a server's message that an error repeats. */
const detailCharactersMax = 300;

/** The reason why one server gave no usable answer. */
export interface Failure {
  /** `mute`: a retry here or at another server may succeed. `unreachable`: the same, and nothing was sent. */
  readonly kind: "mute" | "unreachable" | "refused";
  readonly code: ErrorCode;
  readonly why: string;
}

/** Classifies the error of a call. `isConnected`: whether the server was connected. */
export function failureOf(error: ServiceError, isConnected: boolean): Failure {
  const why = (error.details || error.message)
    .replace(/ Resolution note: $/, "")
    .slice(0, detailCharactersMax);
  const refused = (code: ErrorCode): Failure => ({ kind: "refused", code, why });
  switch (error.code as number) {
    case grpcCode.unauthenticated:
      return refused("UNAUTHENTICATED");
    case grpcCode.permissionDenied:
      return refused("PERMISSION_DENIED");
    case grpcCode.unimplemented:
      return refused("UNSUPPORTED");
    case grpcCode.invalidArgument:
      // With these, a core with authentication asks for a name or another password.
      return refused(
        /user name is empty|authentication failed/.test(why) ? "UNAUTHENTICATED" : "INVALID_CONFIG",
      );
    case grpcCode.resourceExhausted:
      return /space exceeded/.test(why) ? refused("STORE_FULL") : { kind: "mute", code: "NO_QUORUM", why };
    case grpcCode.alreadyExists:
    case grpcCode.notFound:
    case grpcCode.failedPrecondition:
    case grpcCode.outOfRange:
      return refused("NO_QUORUM");
    default:
      if (isConnected) return { kind: "mute", code: "NO_QUORUM", why };
      // A failed handshake can only be recognized by its text; nothing was sent.
      return {
        kind: "unreachable",
        code: /certificate|SSL|TLS|EPROTO/.test(why) ? "UNAUTHENTICATED" : "UNREACHABLE",
        why,
      };
  }
}

/** The core refused the request, and would refuse it again. */
export class CoreRefusal extends LeaseholdError {
  /** The gRPC status code. */
  readonly status: number;

  constructor({ code, why }: Failure, endpoint: string, error: ServiceError) {
    super(code, `the core's server ${endpoint} refuses: ${why}`, { cause: error });
    this.status = error.code;
  }

  get isNotFound(): boolean {
    return this.status === grpcCode.notFound;
  }

  /** Whether the name is taken. */
  get isTaken(): boolean {
    return this.status === grpcCode.alreadyExists;
  }

  /** Whether a lease with this id exists already. */
  get isDuplicate(): boolean {
    return this.status === grpcCode.failedPrecondition && this.message.includes("lease already exists");
  }
}

/** Makes the error of a call that no server answered, with each server's last failure. */
export function noAnswer(failures: ReadonlyMap<string, Failure>, timeoutMs: number): LeaseholdError {
  const each = [...failures].map(([endpoint, { why }]) => `${endpoint} (${why})`).join(", ");
  const all = [...failures.values()];
  if (all.length > 0 && all.every(({ kind }) => kind === "unreachable")) {
    const code = all.some((failure) => failure.code === "UNAUTHENTICATED")
      ? "UNAUTHENTICATED"
      : "UNREACHABLE";
    return new LeaseholdError(code, `no server of the core could be reached at ${each}`);
  }
  const within = formatDuration(Math.round(timeoutMs));
  return new LeaseholdError("NO_QUORUM", `no answer from the core within ${within}${each && `: ${each}`}`);
}
