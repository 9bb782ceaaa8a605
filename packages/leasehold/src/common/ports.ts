/**
 * What the waist and the protocols need from the world. There are three worlds: the real one
 * (`src/runtime/world.ts`), virtual time for users' tests (`src/testing/virtual-world.ts`), and the simulated
 * machines of `packages/sim/src/kit`. All run the same code above these interfaces.
 */

import type { KeepAlive } from "./keep-alive.js";

/** The two clocks of a process. Reading one never blocks. */
export interface Clock {
  /**
   * Steady clock in milliseconds (fractions allowed), from an arbitrary origin. It may stand still while the
   * machine is suspended.
   */
  monotonicMs(): number;
  /** System time in milliseconds since 1970-01-01 UTC. It may step either way. */
  wallMs(): number;
}

/** A pending call. */
export interface Timer {
  /** Idempotent; after it the call does not happen. */
  cancel(): void;
}

export interface Timers {
  /**
   * Calls `run` once, not before `delayMs` on the steady clock, and possibly much later: timers only *wake*
   * code, which then reads the clock and decides.
   */
  after(delayMs: number, run: () => void): Timer;
}

/** Uniform random numbers in `[0, 1)`. They spread retries; nothing that is about safety rests on them. */
export interface Random {
  next(): number;
}

/** A place where those listen who know its name: `diagnostics_channel` of Node. */
export interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** What the platform gives to programs that want to see into libraries. */
export interface ProgramHooks {
  /** Runs functions later in the async context of this call: what `AsyncLocalStorage` holds now. */
  snapshot(): <R>(run: () => R) => R;
  channel(name: string): Channel;
  /** Tells the program of a mistake of its own that must not stop anything else. */
  warn(what: string, error: unknown): void;
}

export interface World {
  /** Absent in worlds that have no process. */
  readonly keepAlive?: KeepAlive;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** Absent in simulated worlds. */
  readonly hooks?: ProgramHooks;
}
