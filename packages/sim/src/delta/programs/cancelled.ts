import type { Cancellation } from "leasehold/inner/lease/provider.js";
import type { Stage } from "../stage/stage.js";

/** A caller gives up within so many δ: in the first question, in the first few, or in the wait that comes after them. */
const patienceDelays = [0.3, 3, 30] as const;

/** One for all: to make one costs more than to give up. */
const gaveUp = new Error("its caller has given up");

/** A caller that may want no more, in both forms in which drivers are told. */
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

/** An operation whose caller wants no more at some moment of it, unless it ends before. */
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

/** Now and then the caller gives up. */
export function perhapsCancelled<Result>(
  stage: Stage,
  operation: (caller?: Caller) => Promise<Result>,
  onCancel?: () => void,
): Promise<Result> {
  const gives = stage.random.chance(stage.plan.cancelRate);
  return gives ? cancelled(stage, operation, onCancel) : stage.party.alive(operation());
}
