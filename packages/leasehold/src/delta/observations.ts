import { stretched } from "../common/clock-rates.js";
import type { DeltaRecord } from "./record/record.js";

/**
 * Resources remembered: about 30 megabytes. Forgetting one is safe: a process that waits for its end restarts
 * the wait.
 */
export const observedMax = 100_000;

interface Observation {
  readonly writer: string;
  readonly nonce: number;
  /** When the first read that returned it ended, on this process's steady clock. */
  readonly sinceMs: number;
}

/**
 * How long each store's cell has been unchanged on this process's steady clock. Clocks are never compared
 * with each other: a lease of Δ is over when its record has been observed unchanged for Δ.
 */
export class Observations {
  readonly #clockRateError: number;
  /** By resource, then by store index. The most recently used resource is last. */
  readonly #seen = new Map<string, (Observation | undefined)[]>();

  constructor(clockRateError: number) {
    this.#clockRateError = clockRateError;
  }

  /** @param nowMs a reading after the answer arrived */
  see(resource: string, store: number, record: DeltaRecord, nowMs: number): void {
    const seen = this.#seen.get(resource) ?? [];
    const last = seen[store];
    if (last === undefined || last.writer !== record.writer || last.nonce !== record.nonce) {
      seen[store] = { writer: record.writer, nonce: record.nonce, sinceMs: nowMs };
    }
    this.#seen.delete(resource);
    this.#seen.set(resource, seen);
    if (this.#seen.size > observedMax) this.forget(this.#seen.keys().next().value!);
  }

  forget(resource: string): void {
    this.#seen.delete(resource);
  }

  /** Milliseconds until the record's lease is certainly over if the record does not change; 0 when it is. */
  untilOverMs(resource: string, store: number, record: DeltaRecord, nowMs: number): number {
    const last = this.#seen.get(resource)?.[store];
    const isSame = last !== undefined && last.writer === record.writer && last.nonce === record.nonce;
    const unchangedMs = isSame ? nowMs - last.sinceMs : 0;
    return Math.max(0, stretched(record.leaseMs, this.#clockRateError) - unchangedMs);
  }
}
