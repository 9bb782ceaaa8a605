/**
 * The clock module (section 3.2). From two imperfect clocks it derives two bounds on the time. The lower
 * bound is certainly not ahead of the time, and declares *other* leases over. The upper bound is certainly
 * not behind, and declares one's *own* leases over. All in milliseconds.
 */
export interface Reading {
  /** Steady clock: durations, timeouts and the second expiry test. */
  mono: number;
  /** System time as read: ballot numbers, and the bound on `until`. */
  wall: number;
  /** Lower bound: certainly reached. May move back (a wall clock that stepped back must be believed). */
  lo: number;
  /** Upper bound: possibly reached already. Never moves back in one incarnation. */
  hi: number;
  /**
   * The clocks disagree. From this reading until the end of the incarnation nothing is held, granted or
   * decided (3.2). The bounds alone cannot tell a process that was stopped or suspended how late it is; this
   * does.
   */
  clocksDisagree: boolean;
}

/** A record that readings are written into. */
export function emptyReading(): Reading {
  return { mono: 0, wall: 0, lo: 0, hi: 0, clocksDisagree: false };
}

/**
 * More than ε at a single reading is a disagreement; more than ε/2 is one after lasting this long on the
 * steady clock.
 */
const disagreesAfterMs = 1_000;

/**
 * The greatest rate at which the anchor follows the wall clock, as a share of steady time: the rate at which
 * a time service may correct one clock without the other. It is far below ρ: a slew applies to both clocks at
 * once, and a drift that the anchor follows goes undetected.
 */
const slewRateMax = 0.0005;

export class FleaseClock {
  /** Wall minus steady time: `anchor + mono` is the wall clock extrapolated by the steady clock. */
  #anchor: number;
  #hi: number;
  #lastMono: number;
  /** When the clocks came to be more than ε/2 apart, on the steady clock. */
  #apartSince = Infinity;
  /** How far apart they were when the disagreement was found; 0 while they agree. */
  #disagreedByMs = 0;
  #distrusted = false;
  readonly #skewMs: number;
  readonly #slewRate: number;

  constructor(mono: number, wall: number, skewMs: number, clockRateError: number) {
    this.#anchor = wall - mono;
    this.#hi = wall;
    this.#lastMono = mono;
    this.#skewMs = skewMs;
    this.#slewRate = Math.min(clockRateError / 2, slewRateMax);
  }

  /**
   * Makes a reading of two clock values. Call it once for each handler, *after* the message has been
   * received, and pass the reading down: one reading for each decision (repair F4).
   */
  read(mono: number, wall: number, into: Reading): Reading {
    this.peek(mono, wall, into);
    const apartMs = this.apartMs(mono, wall);
    this.#apartSince = this.#apartSinceAt(mono, apartMs);
    if (into.clocksDisagree && !this.#distrusted) {
      this.#distrusted = true;
      this.#disagreedByMs = apartMs;
    }
    this.#anchor += this.#slewBy(mono, wall);
    this.#lastMono = mono;
    this.#hi = Math.max(this.#hi, this.#anchor + mono, wall);
    return into;
  }

  /** The same reading without side effects, for observers: observing must not change what happens. */
  peek(mono: number, wall: number, into: Reading): Reading {
    const carried = this.#anchor + this.#slewBy(mono, wall) + mono;
    const hi = Math.max(this.#hi, carried, wall);
    const lo = Math.min(carried, wall);
    into.mono = mono;
    into.wall = wall;
    into.lo = lo;
    into.hi = hi;
    into.clocksDisagree = this.#distrusted || this.#disagreeAt(mono, wall);
    return into;
  }

  /**
   * How far the two clocks are apart, ms: how far the wall clock is ahead of its extrapolation, or behind the
   * latest time that either clock has shown.
   */
  apartMs(mono: number, wall: number): number {
    const carried = this.carriedMs(mono);
    return Math.max(wall - carried, Math.max(this.#hi, carried) - wall);
  }

  /** `M`: the wall clock extrapolated by the steady clock. */
  carriedMs(mono: number): number {
    return this.#anchor + mono;
  }

  /**
   * The distance between the clocks when this process found that they disagree, ms; 0 if peers found it, or
   * if the clocks agree.
   */
  get disagreedByMs(): number {
    return this.#disagreedByMs;
  }

  /** Peers have found this clock wrong: from now on its clocks count as disagreeing. */
  distrust(): void {
    this.#distrusted = true;
  }

  /**
   * Takes a new anchor for a new incarnation: only here may `hi` move back, and only here do clocks agree
   * again.
   */
  restart(mono: number, wall: number): void {
    this.#anchor = wall - mono;
    this.#hi = wall;
    this.#lastMono = mono;
    this.#apartSince = Infinity;
    this.#disagreedByMs = 0;
    this.#distrusted = false;
  }

  #disagreeAt(mono: number, wall: number): boolean {
    const apartMs = this.apartMs(mono, wall);
    return apartMs > this.#skewMs || mono - this.#apartSinceAt(mono, apartMs) >= disagreesAfterMs;
  }

  #apartSinceAt(mono: number, apartMs: number): number {
    return apartMs > this.#skewMs / 2 ? Math.min(this.#apartSince, mono) : Infinity;
  }

  /**
   * How far the anchor follows a small correction of the wall clock: at the rate `slewRateMax`, which is at
   * most ρ/2.
   */
  #slewBy(mono: number, wall: number): number {
    const allowed = Math.max(0, mono - this.#lastMono) * this.#slewRate;
    const apart = wall - (this.#anchor + mono);
    return Math.max(-allowed, Math.min(allowed, apart));
  }
}
