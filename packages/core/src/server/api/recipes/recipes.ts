import { CoreError } from "../../../state/errors.js";
import type { Status, StreamHandler, UnaryCall, UnaryHandler } from "../../wire/rpc/call.js";
import { type Caller, callerOf } from "../calls/calls.js";
import { drained } from "../calls/drained.js";
import { CallFailed, type LocalClient } from "../calls/local.js";
import { Queue } from "./queue.js";

type Call = Pick<UnaryCall, "metadata" | "peer" | "whenOver">;

const statusUnknown = 2;
const passing: ReadonlySet<number> = new Set([4, 8, 14]);

/** A recipe's view of its call. */
export interface RecipeCall {
  /** Aborts when the client is gone or the deadline has passed. */
  readonly signal: AbortSignal;
  queue(name: Uint8Array): Queue;
}

function recipeCall(client: LocalClient, call: Call): RecipeCall {
  const gone = new AbortController();
  // An answered call waits for nothing more.
  call.whenOver(() => gone.abort());
  const caller: Caller = callerOf(call);
  return { signal: gone.signal, queue: (name) => new Queue(client, caller, name) };
}

/** Makes a unary handler that makes several calls, and may wait for long. */
export function recipe<Request, Response>(
  client: LocalClient,
  answer: (request: Request, call: RecipeCall) => Promise<Response>,
): UnaryHandler {
  return (call, callback) => {
    const run = async () => {
      try {
        callback(null, await answer(asked(call.request), recipeCall(client, call)));
      } catch (error) {
        callback(statusOf(error));
      }
    };
    void run();
  };
}

/** The same for a stream of answers. */
export function streamRecipe<Request, Response>(
  client: LocalClient,
  answer: (request: Request, call: RecipeCall) => AsyncIterable<Response>,
): StreamHandler {
  return (call) => {
    const under = recipeCall(client, call);
    const run = async () => {
      for await (const response of answer(asked(call.request), under))
        if (!call.write(response)) await drained(call, under.signal);
      call.end();
    };
    run().catch((error: unknown) => call.fail(statusOf(error)));
  };
}

/** Refused while decoding (`readRequest` in `methods.ts`). */
function asked<Request>(request: unknown): Request {
  if (request instanceof CoreError) throw request;
  return request as Request;
}

/**
 * As in etcd, errors of a recipe's calls are passed on as text, without their status. Transient ones
 * (overload, no leader, timeout) keep it, so that clients may retry.
 */
function statusOf(error: unknown): Status {
  const details = error instanceof Error ? error.message : String(error);
  if (error instanceof CoreError) return { code: error.code, details };
  const isPassing = error instanceof CallFailed && passing.has(error.code);
  return { code: isPassing ? error.code : statusUnknown, details };
}
