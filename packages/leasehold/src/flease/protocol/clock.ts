/**
 * The clock module (section 3.2). From two imperfect clocks it makes two bounds on the time: one that is
 * certainly not ahead, to declare the leases of *others* over, and one that is certainly not behind, to
 * declare one's *own* over. All in milliseconds.
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
   * The clocks disagree: by this reading, and by every later one of this incarnation, nothing is held,
   * granted or decided (3.2). A process that was stopped or suspended cannot tell from its bounds how late it
   * is; this detects it.
   */
  clocksDisagree: boolean;
}

/** A record for readings to be written into. */
export function emptyReading(): Reading {
  return { mono: 0, wall: 0, lo: 0, hi: 0, clocksDisagree: false };
}

/**
 * More than ε at a single reading is a disagreement; more than ε/2 is one when it has lasted this long on the
 * steady clock.
 */
const disagreesAfterMs = 1_000;

/**
 * The greatest rate at which the anchor follows the wall clock, as a share of steady time: what a time
 * service may do to one clock without the other. It is far below ρ, as a slew goes into both clocks at once,
 * and what the anchor follows is not seen.
 */
const slewRateMax = 0.0005;

export class FleaseClock {
  /** Wall minus steady time: `anchor + mono` is the wall clock carried on by the steady one. */
  #anchor: number;
  #hi: number;
  #lastMono: number;
  /** Since when the clocks have been more than ε/2 apart, on the steady one. */
  #apartSince = Infinity;
  /** How far apart they were when they were found to disagree; 0 while they agree. */
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
   * received, and pass the reading down: one decision, one reading (repair F4).
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

  /**
   * The same reading without the trace that it leaves, for observers: looking on must not change what
   * happens.
   */
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
   * How far the two clocks are apart, ms: the wall clock ahead of where the steady one carries it, or behind
   * the latest that either has shown.
   */
  apartMs(mono: number, wall: number): number {
    const carried = this.carriedMs(mono);
    return Math.max(wall - carried, Math.max(this.#hi, carried) - wall);
  }

  /** `M`: the wall clock as the steady one carries it on. */
  carriedMs(mono: number): number {
    return this.#anchor + mono;
  }

  /**
   * The distance between the clocks when this process found that they disagree; 0 if peers found it, or
   * if the clocks agree.
   */
  get disagreedByMs(): number {
    return this.#disagreedByMs;
  }

  /** Others have found these clocks wrong: from now on they count as disagreeing. */
  distrust(): void {
    this.#distrusted = true;
  }

  /**
   * A new anchor, for a new incarnation: only here may `hi` move back, and only here do clocks agree again.
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

  /** By how much the anchor follows a small correction of the wall clock: at `slewRateMax`, at most ρ/2. */
  #slewBy(mono: number, wall: number): number {
    const allowed = Math.max(0, mono - this.#lastMono) * this.#slewRate;
    const apart = wall - (this.#anchor + mono);
    return Math.max(-allowed, Math.min(allowed, apart));
  }
}
