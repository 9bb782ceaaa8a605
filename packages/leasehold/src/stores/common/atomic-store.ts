import type { StoreAnswer, StoreCaller, StoreRequest, StoreTraits } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { OpenedStore, ProbeFinding } from "./contract.js";
import { unlessAborted } from "../../common/abort-watch.js";

export type ReplaceRequest = Extract<StoreRequest, { op: "replace" }>;

/**
 * The medium of an {@link AtomicStore}: a directory, or a server with its own protocol. Its methods reject
 * with any error.
 */
export interface AtomicMedium {
  readonly traits: StoreTraits;
  read(register: string): Promise<StoreAnswer>;
  replace(request: ReplaceRequest): Promise<StoreAnswer>;
  list(prefix: string, registersMax: number): Promise<StoreAnswer>;
  /** Maps an error to the code that describes it best. Its message MUST NOT contain credentials. */
  failure(error: unknown): LeaseholdError;
  close(): Promise<void>;
}

/** A store with compare-and-set: the part of the contract that all such stores share. */
export class AtomicStore implements OpenedStore {
  /** Set after the probe, by the function that opens the store. */
  findings: readonly ProbeFinding[] = [];
  readonly #medium: AtomicMedium;
  #closing: Promise<void> | undefined;

  constructor(medium: AtomicMedium) {
    this.#medium = medium;
  }

  get traits(): StoreTraits {
    return this.#medium.traits;
  }

  async perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer> {
    const signal = caller?.signal;
    try {
      if (this.#closing !== undefined) throw this.#error("STORE_UNAVAILABLE", "this store has been closed");
      signal?.throwIfAborted();
      return await unlessAborted(this.#ask(request), signal);
    } catch (error) {
      if (signal?.aborted)
        return { kind: "failed", error: this.#error("STORE_UNAVAILABLE", "the caller gave up") };
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
        throw this.#error("UNSUPPORTED", "it only supports compare-and-set");
      case "replace":
        if (request.next.length > bytesMax)
          throw this.#error(
            "STORE_FULL",
            `it takes ${bytesMax} bytes; the content has ${request.next.length}`,
          );
        return this.#medium.replace(request);
    }
  }

  #error(code: "STORE_UNAVAILABLE" | "STORE_FULL" | "UNSUPPORTED", why: string): LeaseholdError {
    return new LeaseholdError(code, `${this.traits.name}: ${why}`);
  }
}
