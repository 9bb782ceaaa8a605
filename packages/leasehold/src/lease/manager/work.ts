import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import type { LeaseLostError } from "../errors.js";

/** A lease, or a set of leases, under which work runs. */
export interface Holding {
  /**
   * True while work runs under it: `close` then asks the work to stop, and waits a little before it ends the
   * lease.
   */
  hasWork: boolean;
  /**
   * The loss, according to a fresh check of the clocks; `undefined` while it is held, and after a release.
   */
  readonly loss: LeaseLostError | undefined;
  /** @throws LeaseLostError if a fresh check of the clocks finds that it is not held */
  assertHeld(): void;
  /** Asks the work to stop by aborting the signal; the lease stays held. */
  resign(reason: unknown): void;
  release(): Promise<void>;
}

/** Runs work, asks it to stop when `signal` aborts, and releases the lease when the work has settled. */
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
      // An `AbortError` doesn't give the cause of the abort.
      if (error instanceof Error && error.name === "AbortError") throw holding.loss ?? error;
      throw error;
    }
  });
}
