import type { StoreAnswer, StoreRequest, StoreTraits } from "../delta/store.js";
import { LeaseholdError } from "../lease/errors.js";
import type { OpenedStore, ProbeFinding } from "./contract.js";

/**
 * For how long one operation may be under way at a server, ms. Far longer than any δ: its caller gave up long ago. What has not
 * answered by then is given up, so that nothing piles up behind a server that has stopped.
 */
export const operationMsMax = 10_000;

/** The longest content that servers are asked to keep, bytes: a hundred times a record. */
export const serverBytesMax = 65_536;

export type ReplaceRequest = Extract<StoreRequest, { op: "replace" }>;

/** What stands behind a {@link ServerStore}: one server, spoken to in its own language. Its methods reject with any error. */
export interface ServerMedium {
  readonly traits: StoreTraits;
  read(register: string): Promise<StoreAnswer>;
  replace(request: ReplaceRequest): Promise<StoreAnswer>;
  list(prefix: string, registersMax: number): Promise<StoreAnswer>;
  /** Gives each error the code that says best what is wrong. Nothing of the credentials may be in its message. */
  failure(error: unknown): LeaseholdError;
  close(): Promise<void>;
}

/** An atomic store on a server: the part of the contract that is the same for all of them. */
export class ServerStore implements OpenedStore {
  /** Set by whoever opens it, once the probe has come to an end. */
  findings: readonly ProbeFinding[] = [];
  readonly #medium: ServerMedium;
  #closing: Promise<void> | undefined;

  constructor(medium: ServerMedium) {
    this.#medium = medium;
  }

  get traits(): StoreTraits {
    return this.#medium.traits;
  }

  async perform(request: StoreRequest, signal?: AbortSignal): Promise<StoreAnswer> {
    try {
      if (this.#closing !== undefined) throw this.#error("STORE_UNAVAILABLE", "this store has been closed");
      signal?.throwIfAborted();
      return await untilAborted(this.#ask(request), signal);
    } catch (error) {
      if (signal?.aborted)
        return { kind: "failed", error: this.#error("STORE_UNAVAILABLE", "its caller has given up") };
      return { kind: "failed", error: this.#medium.failure(error) };
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#medium.close();
    return this.#closing;
  }

  async #ask(request: StoreRequest): Promise<StoreAnswer> {
    const { bytesMax } = this.traits;
    switch (request.op) {
      case "read":
        return this.#medium.read(request.register);
      case "list":
        return this.#medium.list(request.prefix, request.registersMax);
      case "put":
        throw this.#error("UNSUPPORTED", "it is replaced by compare-and-set only");
      case "replace":
        if (request.next.length > bytesMax)
          throw this.#error("STORE_FULL", `it takes ${bytesMax} bytes, and these are ${request.next.length}`);
        return this.#medium.replace(request);
    }
  }

  #error(code: "STORE_UNAVAILABLE" | "STORE_FULL" | "UNSUPPORTED", why: string): LeaseholdError {
    return new LeaseholdError(code, `${this.traits.name}: ${why}`);
  }
}

/** Rejects with the signal's reason. What was asked goes on, and may still take effect: nobody waits for it any more. */
export async function untilAborted<T>(result: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return result;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    void result.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
