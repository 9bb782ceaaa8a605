import { type FenceCode, fenceCodes } from "./errors.js";
import { admit, type GuardOptions, isStale as hasStaleCode, type Refusal, tokenHeader } from "./guard.js";
import { checkToken } from "./token.js";

/** The key of a refusal's metadata that has its code. */
export const codeKey = "x-fencing-code";

/** The part of the metadata of `@grpc/grpc-js` that is used. */
export interface GrpcMetadata {
  get(key: string): unknown[];
  set(key: string, value: string): void;
  clone(): GrpcMetadata;
}

/** The status of each refusal: FAILED_PRECONDITION and INVALID_ARGUMENT. */
const statuses = { TOKEN_MISSING: 3, TOKEN_INVALID: 3, TOKEN_STALE: 9 } as const satisfies Record<
  Refusal,
  number
>;

/** The part of a call of a client that is used. */
interface ClientCall {
  start(metadata: GrpcMetadata, listener?: unknown): void;
}

/**
 * An interceptor of clients. Its result is of the class of calls of `@grpc/grpc-js`, which is not imported
 * here.
 */
export type TokenInterceptor = <Call>(
  options: object,
  nextCall: (options: never) => { start(metadata: never, listener?: never): void },
) => Call;

/**
 * An interceptor for clients of `@grpc/grpc-js`, for one call or for all calls of a client. It puts the token
 * into the metadata `x-fencing-token`. A call that the server refuses fails with a status, as every failed
 * call; {@link refusalOf} finds the reason.
 *
 * @param token the token of the lease, or a function that returns the present one for each call. The call
 *   throws `TOKEN_INVALID` if it is not a token
 *
 * @example
 * ```ts
 * import { tokenInterceptor } from "@leasehold/fence/grpc";
 *
 * const options = { interceptors: [tokenInterceptor(42n)] }; // client.put(request, options, callback)
 * assert.equal(options.interceptors.length, 1);
 * ```
 */
export function tokenInterceptor(token: bigint | (() => bigint)): TokenInterceptor {
  const present = typeof token === "function" ? token : () => token;
  const intercept = (options: object, nextCall: (options: object) => ClientCall): ClientCall => {
    const current = present();
    checkToken(current);
    const call = nextCall(options);
    const start = call.start.bind(call);
    call.start = (metadata, listener) => {
      // The caller may use its metadata again, for a call without a token.
      const own = metadata.clone();
      own.set(tokenHeader, String(current));
      start(own, listener);
    };
    return call;
  };
  return intercept as unknown as TokenInterceptor;
}

/** The reason for which a server has refused a call; undefined if the call failed for another reason. */
export function refusalOf(error: unknown): FenceCode | undefined {
  if (!(error instanceof Error) || !("metadata" in error)) return undefined;
  const [code] = (error.metadata as GrpcMetadata | undefined)?.get(codeKey) ?? [];
  return typeof code === "string" && Object.hasOwn(statuses, code) ? (code as Refusal) : undefined;
}

/** The part of a call of a server that is used. */
export interface GrpcServerCall {
  readonly metadata: GrpcMetadata;
}

/** A refusal reports the reason only, and reveals neither the fence's name nor another holder's token. */
function statusOf(code: Refusal, { metadata }: GrpcServerCall): Error {
  const Metadata = metadata.constructor as new () => GrpcMetadata;
  const own = new Metadata();
  own.set(codeKey, code);
  const details = fenceCodes[code];
  return Object.assign(new Error(details), { code: statuses[code], details, metadata: own });
}

/**
 * Guards a handler of `@grpc/grpc-js` that answers once: a unary call or a stream from the client. The
 * guard is not a fence itself: the handler gets the token and must write with it through a fence, which
 * checks and writes in one step.
 *
 * Refusals are statuses with the reason in the metadata `x-fencing-code`: INVALID_ARGUMENT for
 * `TOKEN_MISSING` and `TOKEN_INVALID`, and FAILED_PRECONDITION for `TOKEN_STALE`, when `options.fence` has
 * seen a greater token, or the handler throws this code or gives it to its callback. Other errors go to the
 * callback.
 *
 * @param handler may be asynchronous; `server.addService(service, { put: guardGrpc(async (call, token,
 *   callback) => …) })`
 */
export function guardGrpc<Call extends GrpcServerCall, Callback extends (...answer: never[]) => void>(
  handler: (call: Call, token: bigint, callback: Callback) => unknown,
  options: GuardOptions<Call> = {},
): (call: Call, callback: Callback) => Promise<void> {
  return async (call, callback) => {
    const send = callback as unknown as Answer;
    let isAnswered = false;
    const answer: Answer = (error, value, trailer, flags) => {
      isAnswered = true;
      send(hasStaleCode(error) ? statusOf("TOKEN_STALE", call) : error, value, trailer, flags);
    };
    try {
      const values = call.metadata.get(tokenHeader);
      const token = await admit(values.length > 1 ? values : values[0], call, options);
      if (typeof token === "bigint") await handler(call, token, answer as unknown as Callback);
      else answer(statusOf(token, call));
    } catch (error) {
      // A call has one answer.
      if (isAnswered) throw error;
      answer(error);
    }
  };
}

type Answer = (error: unknown, value?: unknown, trailer?: unknown, flags?: unknown) => void;
