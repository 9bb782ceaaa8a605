import type { Clock } from "../common/ports.js";

/**
 * The steady clock, read once in each turn of the event loop: for durations far longer than a turn, where
 * reading the clock each time would cost as much as the work that is counted.
 */
export function turnClock(clock: Clock): Pick<Clock, "monotonicMs"> {
  let nowMs: number | undefined;
  const forget = () => (nowMs = undefined);
  return {
    monotonicMs: () => {
      if (nowMs === undefined) {
        nowMs = clock.monotonicMs();
        setImmediate(forget).unref();
      }
      return nowMs;
    },
  };
}
