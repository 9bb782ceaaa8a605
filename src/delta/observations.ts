import { stretched } from "../common/clock-rates.js";
import type { DeltaRecord } from "./record/record.js";

/**
 * Resources that are kept in mind, some 30 megabytes. Forgetting one is safe: a process that waits for its
 * end has to wait anew.
 */
export const observedMax = 100_000;

interface Observation {
  readonly writer: string;
  readonly nonce: number;
  /** The end of the read that first returned it, on this process's steady clock. */
  readonly sinceMs: number;
}

/**
 * Since when each store's cell has been what it is, by this process's own steady clock. No clock is ever compared with
 * another's: a lease of Δ is over when its record has been seen unchanged for Δ.
 */
export class Observations {
  readonly #clockRateError: number;
  /** By resource, then by the index of the store. The resource that was looked at last comes last. */
  readonly #seen = new Map<string, (Observation | undefined)[]>();

  constructor(clockRateError: number) {
    this.#clockRateError = clockRateError;
  }

  /** `nowMs` is a reading after the answer had come. */
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

  /** How long until the record's lease is certainly over if it stays what it is, ms; 0 when it is. */
  untilOverMs(resource: string, store: number, record: DeltaRecord, nowMs: number): number {
    const last = this.#seen.get(resource)?.[store];
    const isSame = last !== undefined && last.writer === record.writer && last.nonce === record.nonce;
    const unchangedMs = isSame ? nowMs - last.sinceMs : 0;
    return Math.max(0, stretched(record.leaseMs, this.#clockRateError) - unchangedMs);
  }
}
