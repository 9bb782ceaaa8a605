import { LeaseLostError } from "../errors.js";
import type { Held } from "../forms/exclusive.js";
import { isOwnEnd } from "./held-lease.js";
import type { Lease } from "../types.js";
import { runUnder } from "./work.js";

type Term<T> = { readonly stepsDown: true; readonly value: T } | { readonly stepsDown: false };

type Around = <T>(run: () => Promise<Term<T>>) => Promise<Term<T>>;

/**
 * Campaigns, leads and campaigns again; see `Leases.lead`. `campaign` waits for the lease without a time
 * limit, until `signal` aborts.
 *
 * @param around runs each campaign with its term
 */
export async function lead<T>(
  campaign: () => Promise<Held>,
  work: (lease: Lease) => Promise<T>,
  signal: AbortSignal | undefined,
  around: Around = (run) => run(),
): Promise<T | undefined> {
  while (!isAborted(signal)) {
    const term = await around(() => campaignAndServe(campaign, work, signal));
    if (term.stepsDown) return term.value;
  }
  return undefined;
}

async function campaignAndServe<T>(
  campaign: () => Promise<Held>,
  work: (lease: Lease) => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<Term<T>> {
  let lease: Held;
  try {
    lease = await campaign();
  } catch (error) {
    if (isAborted(signal)) return { stepsDown: false };
    throw error;
  }
  return serve(lease, work, signal);
}

/** Leads for one tenure. The lease stays held until the work has settled, unless it is lost before that. */
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

/** Whether the work stopped because a signal or `assertHeld` made it stop, not because of its own failure. */
function isAnswer(error: unknown, lease: Held, signal: AbortSignal | undefined): boolean {
  if (error instanceof LeaseLostError && error.resource === lease.resource) return !isOwnEnd(error.reason);
  const stopRequested =
    isAborted(signal) || (lease.signal.aborted && (lease.ended === undefined || !isOwnEnd(lease.ended)));
  if (!stopRequested) return false;
  if (error === lease.signal.reason || error === signal?.reason) return true;
  return error instanceof Error && error.name === "AbortError";
}

/** A function, because the compiler would narrow the property to `false` after the first check. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
