import type { Protocol } from "../../delta/effects.js";
import type { StoreAnswer, StoreRequest } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";

/** Parameters for a request to one store of a farm. */
export interface Asking {
  /** Number of stores, n. */
  readonly stores: number;
  /** Timeout of one operation on a store, ms. */
  readonly timeoutMs: number;
}

/** Sends a request to one store. */
export function* ask(at: Asking, store: number, request: StoreRequest): Protocol<StoreAnswer | undefined> {
  const requests = Array.from({ length: at.stores }, (_, index) => (index === store ? request : undefined));
  const enough = (answers: readonly (StoreAnswer | undefined)[]) => answers[store] !== undefined;
  const { answers } = yield { kind: "ask", requests, enough, timeoutMs: at.timeoutMs };
  return answers[store];
}

/** The cells in an answer, or the reason why it has none. */
export function cellsIn(answer: StoreAnswer | undefined): readonly Uint8Array[] | LeaseholdError {
  if (answer === undefined) return new LeaseholdError("STORE_UNAVAILABLE", "a store did not answer in time");
  if (answer.kind === "failed") return answer.error;
  if (answer.kind === "cells" || answer.kind === "conflict") return answer.cells;
  throw new Error(`assertion failed: ${answer.kind} has no cells`);
}
