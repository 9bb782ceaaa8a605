/**
 * The ports through which the waist and the protocols use the world. There are three worlds: the real one
 * (`src/runtime/world.ts`), virtual time for users' tests (`src/testing/virtual-world.ts`), and the simulated
 * machines of `packages/sim/src/kit`. All run the same code above these interfaces.
 */

import type { KeepAlive } from "./keep-alive.js";

/** A process's two clocks. Reading them never blocks. */
export interface Clock {
  /**
   * The steady clock, in milliseconds (fractions allowed), from an arbitrary origin. It may stand still while
   * the machine is suspended.
   */
  monotonicMs(): number;
  /** The system time, in milliseconds since 1970-01-01 UTC. It may step in either direction. */
  wallMs(): number;
}

/** A scheduled call. */
export interface Timer {
  /** Idempotent; prevents the call. */
  cancel(): void;
}

export interface Timers {
  /**
   * Calls `run` once, never before `delayMs` have passed on the steady clock, but possibly much later: timers
   * only *wake* code, which then reads the clock and decides.
   */
  after(delayMs: number, run: () => void): Timer;
}

/** Uniform random numbers in `[0, 1)`. They spread retries; safety never depends on them. */
export interface Random {
  next(): number;
}

/** A named channel with subscribers, as in Node's `diagnostics_channel`. */
export interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** The platform's hooks for programs that observe libraries. */
export interface ProgramHooks {
  /**
   * Captures the async context of this call (the values of `AsyncLocalStorage`), to run functions in it
   * later.
   */
  snapshot(): <R>(run: () => R) => R;
  channel(name: string): Channel;
  /** Reports an error in the program's own code without stopping anything else. */
  warn(what: string, error: unknown): void;
}

export interface World {
  /** Absent in worlds without a process. */
  readonly keepAlive?: KeepAlive;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** Absent in simulated worlds. */
  readonly hooks?: ProgramHooks;
}
