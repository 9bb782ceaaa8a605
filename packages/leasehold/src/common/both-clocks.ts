import type { Clock } from "./ports.js";

/** A reading of a machine's two clocks. */
export interface BothClocks {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** A reusable reading, for code where a new object for each reading would be too expensive. */
export interface ClockRecord extends BothClocks {
  monotonicMs: number;
  wallMs: number;
}

/**
 * The two reads take about 0.0001 ms. If more time than this passes between them, the process was
 * interrupted.
 */
const betweenLooksMsMax = 1;

/** Attempts at an uninterrupted reading; the last one is used even if it was interrupted. */
const readingsMax = 16;

/**
 * Reads both clocks at the same moment. On a busy machine a process may stop for a tenth of a second between
 * the two reads. In such a reading the clocks would seem to disagree, which would end every lease.
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
 * Milliseconds between two readings, by the clock that advanced further: the steady clock stops while the
 * machine is suspended, and the system clock can be set.
 */
export function elapsedMs(from: BothClocks, to: BothClocks): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs);
}
