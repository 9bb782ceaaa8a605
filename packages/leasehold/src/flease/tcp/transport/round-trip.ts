import type { ClockStamp, Echo } from "../wire/codec.js";

/** The minimum is taken over the last one to two windows of this many heartbeats. */
const WINDOW_TICKS = 16;

/**
 * Echoes and round trips of one link: each batch names the last batch from the other side, and its age. The
 * smallest recent round trip is the measure: anything above it was queueing.
 */
export class RoundTrip {
  readonly #echo: Echo = { monoMs: 0, loMs: 0, heldMs: 0, roundTripMs: -1 };
  /** Our steady clock at the last bytes, and at the batch that we echo. */
  #heardMs = 0;
  #echoHeardMs = 0;
  #windowMs = Infinity;
  #windowBeforeMs = Infinity;
  #ticks = 0;

  get smallestMs(): number | undefined {
    const smallestMs = Math.min(this.#windowMs, this.#windowBeforeMs);
    return smallestMs === Infinity ? undefined : smallestMs;
  }

  heard(monoMs: number): void {
    this.#heardMs = monoMs;
  }

  /**
   * Records a batch that was part of the last bytes: keeps its stamp for the next echo and fills in
   * `echo.roundTripMs`.
   */
  received(stamp: ClockStamp, echo: Echo): void {
    this.#echo.monoMs = stamp.monoMs;
    this.#echo.loMs = stamp.loMs;
    this.#echoHeardMs = this.#heardMs;
    if (echo.loMs === 0) {
      echo.roundTripMs = -1;
      return;
    }
    echo.roundTripMs = Math.max(0, this.#heardMs - echo.monoMs - echo.heldMs);
    if (echo.roundTripMs < this.#windowMs) this.#windowMs = echo.roundTripMs;
  }

  /** The echo for a batch that leaves at this time. */
  echoAt(monoMs: number): Echo {
    if (this.#echo.loMs !== 0) this.#echo.heldMs = Math.max(0, monoMs - this.#echoHeardMs);
    return this.#echo;
  }

  tick(): void {
    if (++this.#ticks < WINDOW_TICKS) return;
    this.#ticks = 0;
    this.#windowBeforeMs = this.#windowMs;
    this.#windowMs = Infinity;
  }
}
