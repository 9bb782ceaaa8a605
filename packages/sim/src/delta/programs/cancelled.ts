import type { Cancellation } from "leasehold/inner/lease/provider.js";
import type { Stage } from "../stage/stage.js";

/**
 * The patience of callers, in δ: they give up during the first request, during the first few, or during the
 * wait after them.
 */
const patienceDelays = [0.3, 3, 30] as const;

/** Shared, because creating an error costs more than the cancellation itself. */
const gaveUp = new Error("its caller has given up");

/** A caller that may cancel, in both forms that drivers accept. */
export class Caller implements Cancellation {
  cancelled = false;
  onCancel: (() => void) | undefined;
  readonly #controller = new AbortController();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  giveUp(): void {
    this.cancelled = true;
    this.onCancel?.();
    this.#controller.abort(gaveUp);
  }
}

/** An operation whose caller cancels at some moment, unless it ends before. */
export async function cancelled<Result>(
  { plan, party, random, counters }: Stage,
  operation: (caller: Caller) => Promise<Result>,
  onCancel: () => void = () => undefined,
): Promise<Result> {
  const caller = new Caller();
  const patienceMs = random.next() * random.pick(patienceDelays) * plan.delayMs;
  const timer = party.timers.after(patienceMs, () => {
    counters.cancellations += 1;
    onCancel();
    caller.giveUp();
  });
  const result = await party.alive(operation(caller));
  timer.cancel();
  return result;
}

/** Cancels the operation now and then. */
export function perhapsCancelled<Result>(
  stage: Stage,
  operation: (caller?: Caller) => Promise<Result>,
  onCancel?: () => void,
): Promise<Result> {
  const gives = stage.random.chance(stage.plan.cancelRate);
  return gives ? cancelled(stage, operation, onCancel) : stage.party.alive(operation());
}
