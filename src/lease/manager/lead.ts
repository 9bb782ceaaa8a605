import { LeaseLostError } from "../errors.js";
import type { Held } from "../forms/exclusive.js";
import { isOwnEnd } from "./held-lease.js";
import type { Lease } from "../types.js";
import { runUnder } from "./work.js";

type Term<T> = { readonly stepsDown: true; readonly value: T } | { readonly stepsDown: false };

/**
 * Campaigns, leads and campaigns again; see `Leases.lead`. `campaign` waits for the lease, however long,
 * until `signal` aborts.
 */
export async function lead<T>(
  campaign: () => Promise<Held>,
  work: (lease: Lease) => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T | undefined> {
  while (!isAborted(signal)) {
    let lease: Held;
    try {
      lease = await campaign();
    } catch (error) {
      if (isAborted(signal)) return undefined;
      throw error;
    }
    const term = await serve(lease, work, signal);
    if (term.stepsDown) return term.value;
  }
  return undefined;
}

/** One tenure. The lease stays held until the work has settled, unless it is lost before. */
function serve<T>(
  lease: Held,
  work: (lease: Lease) => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<Term<T>> {
  return runUnder(lease, signal, async (): Promise<Term<T>> => {
    try {
      lease.assertHeld();
      const value = await work(lease);
      const stopped = isAborted(signal) || lease.loss !== undefined;
      return stopped ? { stepsDown: false } : { stepsDown: true, value };
    } catch (error) {
      if (isAnswer(error, lease, signal)) return { stepsDown: false };
      throw error;
    }
  });
}

/** The work stopped because it was told to, by a signal or by `assertHeld`: no failure of its own. */
function isAnswer(error: unknown, lease: Held, signal: AbortSignal | undefined): boolean {
  if (error instanceof LeaseLostError && error.resource === lease.resource) return !isOwnEnd(error.reason);
  const toldToStop =
    isAborted(signal) || (lease.signal.aborted && (lease.ended === undefined || !isOwnEnd(lease.ended)));
  if (!toldToStop) return false;
  if (error === lease.signal.reason || error === signal?.reason) return true;
  return error instanceof Error && error.name === "AbortError";
}

/** A function, because the compiler takes a property that it has seen to be false for false ever after. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
