import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import type { LeaseLostError } from "../errors.js";

/** A lease, or several at once, under which work runs. */
export interface Holding {
  /** Work runs under it: `close` asks that to stop, and waits a little, before it takes the lease. */
  hasWork: boolean;
  /** By a fresh look at the clocks: how it was lost; `undefined` while it is held, and after a release. */
  readonly loss: LeaseLostError | undefined;
  /** @throws LeaseLostError when it is not held, by a fresh look at the clocks. */
  assertHeld(): void;
  /** Asks the work, by the signal, to stop; the lease stays held. */
  resign(reason: unknown): void;
  release(): Promise<void>;
}

/** Runs work, which is asked to stop when `signal` aborts, and releases the lease when it has settled. */
export async function runUnder<R>(
  holding: Holding,
  signal: AbortSignal | undefined,
  run: () => Promise<R>,
): Promise<R> {
  const resign = () => holding.resign(signal?.reason);
  holding.hasWork = true;
  watchAbort(signal, resign);
  try {
    return await run();
  } finally {
    unwatchAbort(signal, resign);
    await holding.release();
  }
}

/** See `Leases.using`. */
export function using<H extends Holding, T>(
  holding: H,
  work: (holding: H) => T | Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  return runUnder(holding, signal, async () => {
    try {
      holding.assertHeld();
      const value = await work(holding);
      const { loss } = holding;
      if (loss !== undefined) throw loss;
      return value;
    } catch (error) {
      // What was stopped by the signal says no more than that it was stopped.
      if (error instanceof Error && error.name === "AbortError") throw holding.loss ?? error;
      throw error;
    }
  });
}
