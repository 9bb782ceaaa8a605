import { type Effect, lookAtClocks, type Protocol, type Resumption } from "../../../src/delta/effects.js";
import type { Stage } from "./stage.js";

/** An operation has about so many effects: its caller may give up at any of them. */
const effectsMax = 14;

/**
 * The same operation for a caller that wants no more at some moment of it. As the driver does, this ends delays and reads then and
 * there, and waits for writes.
 */
export function* cancelled<Result>(
  stage: Stage,
  operation: Protocol<Result>,
  onCancel: () => void = () => undefined,
): Protocol<Result> {
  const { random, counters } = stage;
  const last = random.below(effectsMax);
  let given: Resumption = yield lookAtClocks;
  for (let effects = 0; ; effects += 1) {
    if (effects === last + 1) onCancel();
    const step = operation.next({ ...given, cancelled: effects > last });
    if (step.done === true) return step.value;
    if (effects === last) counters.cancellations += 1;
    given = yield effects < last ? step.value : cut(step.value, effects === last ? random.next() : 0);
  }
}

/** Now and then the caller gives up. */
export function perhapsCancelled<Result>(
  stage: Stage,
  operation: Protocol<Result>,
  onCancel?: () => void,
): Protocol<Result> {
  return stage.random.chance(stage.plan.cancelRate) ? cancelled(stage, operation, onCancel) : operation;
}

function cut(effect: Effect, part: number): Effect {
  if (effect.kind === "delay") return { ...effect, delayMs: effect.delayMs * part };
  const isRead = effect.requests.every((request) => request?.op !== "replace" && request?.op !== "put");
  return isRead ? { ...effect, timeoutMs: effect.timeoutMs * part } : effect;
}
