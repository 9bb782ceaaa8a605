import type { Clock } from "./ports.js";

/** A reading of both clocks of a machine. */
export interface BothClocks {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** A reusable reading, where a new object for each would be too expensive. */
export interface ClockRecord extends BothClocks {
  monotonicMs: number;
  wallMs: number;
}

/**
 * A longer time between the two reads means that the process was interrupted there. They take about 0.0001
 * ms.
 */
const betweenLooksMsMax = 1;

/** Attempts at a reading without an interruption; the last one counts as it is. */
const readingsMax = 16;

/**
 * Reads both clocks at the same moment. A busy machine may stop a process for a tenth of a second between the
 * two reads; such a reading would show clocks that disagree although they do not, and end every lease.
 */
export function readBothClocks(clock: Clock, into: ClockRecord = { monotonicMs: 0, wallMs: 0 }): BothClocks {
  for (let readings = 1; ; readings += 1) {
    into.monotonicMs = clock.monotonicMs();
    into.wallMs = clock.wallMs();
    if (readings === readingsMax) return into;
    if (clock.monotonicMs() - into.monotonicMs <= betweenLooksMsMax) return into;
  }
}

/**
 * Milliseconds from one reading to another, by the clock that advanced further: the steady clock stands still
 * in a suspended machine, and the system clock can be set.
 */
export function elapsedMs(from: BothClocks, to: BothClocks): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs);
}
