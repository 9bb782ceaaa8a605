import { faults } from "#faults";

/**
 * The clock module (section 3.2). From two imperfect clocks it makes two bounds on the time: one that is
 * certainly not ahead, to declare the leases of *others* over, and one that is certainly not behind, to declare
 * one's *own* over. All in milliseconds.
 */
export interface Reading {
  /** Steady clock: durations, time-outs and the second expiry test. */
  mono: number;
  /** System time as it was read: ballot numbers, and the bound on `until`. */
  wall: number;
  /** Certainly reached. May move back (a wall clock that stepped back must be believed). */
  lo: number;
  /** Possibly reached already. Never moves back in one incarnation. */
  hi: number;
  /**
   * The system time lies more than ε behind `hi`: it has stepped back. While this process was stopped it may have been
   * later than any reading shows, so `hi` says too little.
   */
  steppedBack: boolean;
}

/** A disagreement between the clocks must last this long on the steady clock before it counts as a fault, not a glitch. */
const faultPersistsMs = 1_000;

export class FleaseClock {
  /** Wall minus steady time: `anchor + mono` is the wall clock carried on by the steady one. */
  #anchor: number;
  #hi: number;
  #lo = -Infinity;
  #lastMono: number;
  #disagreesSince = Infinity;
  /** Once seen it holds until a restart: a tenure that has ended must not come back when the clocks do. */
  #steppedBack = false;
  readonly #skewMs: number;
  readonly #slewRate: number;

  constructor(mono: number, wall: number, skewMs: number, clockRateError: number) {
    this.#anchor = wall - mono;
    this.#hi = wall;
    this.#lastMono = mono;
    this.#skewMs = skewMs;
    this.#slewRate = clockRateError / 2;
  }

  /**
   * Makes a reading of two clock values. Call it once for each handler, *after* the message has been received, and
   * pass the reading down: one decision, one reading (repair F4).
   */
  read(mono: number, wall: number, into: Reading): Reading {
    this.#anchor += this.#slewBy(mono, wall);
    this.#lastMono = mono;
    this.#hi = Math.max(this.#hi, this.#anchor + mono, wall);
    if (this.#hi - wall > this.#skewMs) this.#steppedBack = true;
    if (faults.lowerClockMonotone) this.#lo = Math.max(this.#lo, Math.min(this.#anchor + mono, wall));
    return this.peek(mono, wall, into);
  }

  /** The same reading without the trace that it leaves, for observers: looking on must not change what happens. */
  peek(mono: number, wall: number, into: Reading): Reading {
    const carried = this.#anchor + this.#slewBy(mono, wall) + mono;
    const hi = Math.max(this.#hi, carried, wall);
    const lo = Math.max(this.#lo, Math.min(carried, wall));
    into.mono = mono;
    into.wall = wall;
    into.lo = faults.clockBoundsSwapped ? hi : lo;
    into.hi = faults.clockBoundsSwapped ? lo : hi;
    into.steppedBack = this.#steppedBack || hi - wall > this.#skewMs;
    return into;
  }

  /** True when wall and steady clock have disagreed by more than ε/2 for a while: whoever owns this clock must start over (3.2). */
  isFaulty(now: Reading): boolean {
    const agrees = !this.#steppedBack && this.disagreementMs(now) <= this.#skewMs / 2;
    if (agrees) this.#disagreesSince = Infinity;
    else this.#disagreesSince = Math.min(this.#disagreesSince, now.mono);
    return now.mono - this.#disagreesSince >= faultPersistsMs;
  }

  /** How far the two clocks, or the upper bound and both of them, are apart. */
  disagreementMs(now: Reading): number {
    const carried = this.#anchor + now.mono;
    return Math.max(Math.abs(carried - now.wall), this.#hi - Math.max(carried, now.wall));
  }

  /** A new anchor, for a new incarnation: only here may `hi` move back. */
  restart(mono: number, wall: number): void {
    this.#steppedBack = false;
    this.#anchor = wall - mono;
    this.#hi = wall;
    this.#lo = -Infinity;
    this.#lastMono = mono;
    this.#disagreesSince = Infinity;
  }

  /** Lets the anchor follow small corrections of the wall clock, at ρ/2. */
  #slewBy(mono: number, wall: number): number {
    const allowed = Math.max(0, mono - this.#lastMono) * this.#slewRate;
    const apart = wall - (this.#anchor + mono);
    return Math.max(-allowed, Math.min(allowed, apart));
  }

  clone(): FleaseClock {
    const copy = new FleaseClock(0, 0, this.#skewMs, this.#slewRate * 2);
    copy.#anchor = this.#anchor;
    copy.#hi = this.#hi;
    copy.#lo = this.#lo;
    copy.#steppedBack = this.#steppedBack;
    copy.#lastMono = this.#lastMono;
    copy.#disagreesSince = this.#disagreesSince;
    return copy;
  }
}
