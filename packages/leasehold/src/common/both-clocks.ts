import type { Clock } from "./ports.js";

/** Both clocks of a machine at one moment. */
export interface BothClocks {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** For readings to be written into, where a new record for each would be too dear. */
export interface ClockRecord extends BothClocks {
  monotonicMs: number;
  wallMs: number;
}

/**
 * More time than this between the looks at the two clocks: the process was interrupted there. They take some
 * 0.0001 ms.
 */
const betweenLooksMsMax = 1;

/** Tries for a reading without an interruption. After so many the last reading counts as it is. */
const readingsMax = 16;

/**
 * Reads both clocks at one moment. A busy machine may stop a process for a tenth of a second after it has
 * read the one clock and before it reads the other; such a reading would show clocks that disagree although
 * they do not, and end every lease.
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
 * Milliseconds from one reading to another, by the clock that went further: the steady one stands still in a
 * suspended machine, and the system's can be set.
 */
export function elapsedMs(from: BothClocks, to: BothClocks): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs);
}
