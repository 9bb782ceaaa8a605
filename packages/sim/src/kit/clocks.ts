/** The assumptions about clocks that hold in a run (7.1). */
export const clockModes = ["a", "b", "c", "d", "e", "f", "g"] as const;
export type ClockMode = (typeof clockModes)[number];

export interface ClockAssumptions {
  /** A-wall holds: every two wall clocks are within ε of each other at every instant. */
  readonly wall: boolean;
  /** A-rate: every steady clock runs at its rate within ρ, and never stands still. */
  readonly rate: boolean;
  /** The wall clocks hold together only pairwise: they step in company, far beyond ε. */
  readonly stepsTogether: boolean;
  /** Machines are suspended: nothing happens there, and the steady clock stands still. In mode g that is all that breaks A-rate. */
  readonly suspends: boolean;
}

export const assumptionsOf: Readonly<Record<ClockMode, ClockAssumptions>> = {
  a: { wall: true, rate: false, stepsTogether: false, suspends: true },
  b: { wall: false, rate: true, stepsTogether: false, suspends: false },
  c: { wall: true, rate: true, stepsTogether: false, suspends: false },
  d: { wall: false, rate: false, stepsTogether: false, suspends: true },
  e: { wall: true, rate: false, stepsTogether: true, suspends: true },
  f: { wall: true, rate: true, stepsTogether: true, suspends: false },
  g: { wall: false, rate: true, stepsTogether: false, suspends: true },
};

/** True time 0 on a perfect wall clock: an arbitrary moment after the epoch of ballot numbers. */
export const startWallMs = 1_800_000_000_000;

/** The common part of all wall clocks: their joint steps. */
export class SharedWall {
  offsetMs = 0;
  /** The number of backward steps. */
  stepsBack = 0;

  stepBy(ms: number): void {
    this.offsetMs += ms;
    if (ms < 0) this.stepsBack += 1;
  }
}

/** A wake-up is scheduled this much late, because rounding could make it early, and repeat it for ever. */
const wakeSlackMs = 0.001;

/** One machine's two clocks, as functions of true time (ms since the run began). */
export class SimClock {
  /** The offset of the wall clock, besides the common part. */
  offsetMs = 0;
  readonly #shared: SharedWall;
  /** System clocks that show whole milliseconds, as `Date.now` does. */
  readonly #wholeMs: boolean;
  #steadyMs: number;
  #sinceMs = 0;
  #rate = 1;
  #slewing = false;

  constructor(shared: SharedWall, steadyMs: number, wholeMs: boolean) {
    this.#shared = shared;
    this.#steadyMs = steadyMs;
    this.#wholeMs = wholeMs;
  }

  get rate(): number {
    return this.#rate;
  }

  /** A time service slews both clocks alike, so they don't diverge. */
  get isSlewing(): boolean {
    return this.#slewing;
  }

  monoAt(timeMs: number): number {
    return this.#steadyMs + (timeMs - this.#sinceMs) * this.#rate;
  }

  wallAt(timeMs: number): number {
    const wall = startWallMs + timeMs + this.#shared.offsetMs + this.offsetMs + this.#slewedMs(timeMs);
    return this.#wholeMs ? Math.floor(wall) : wall;
  }

  /** From now on the steady clock runs at this rate; 0 stops it, as a suspended machine does. */
  setRate(timeMs: number, rate: number): void {
    this.offsetMs += this.#slewedMs(timeMs);
    this.#steadyMs = this.monoAt(timeMs);
    this.#sinceMs = timeMs;
    this.#rate = rate;
    this.#slewing = false;
  }

  /** From now on both clocks run at this rate. */
  slew(timeMs: number, rate: number): void {
    this.setRate(timeMs, rate);
    this.#slewing = true;
  }

  #slewedMs(timeMs: number): number {
    return this.#slewing ? (timeMs - this.#sinceMs) * (this.#rate - 1) : 0;
  }

  /** The steady clock is further at once. */
  jump(ms: number): void {
    this.#steadyMs += ms;
  }

  /** The true time at which the steady clock will show `mono` if its rate stays; `Infinity` when it never will. */
  timeOfMono(mono: number): number {
    if (this.#rate === 0 || mono === Infinity) return Infinity;
    return this.#sinceMs + (mono - this.#steadyMs) / this.#rate + wakeSlackMs;
  }
}
