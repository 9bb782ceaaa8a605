import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { Applied, CoreState } from "@leasehold/core/inner/state/state.js";
import type { ReferenceObserver } from "../world/reference.js";
import type { CoreReport } from "../world/invariants.js";

/**
 * No lease ends before its last acknowledged refresh (or its grant) plus its time to live, counted from
 * before the request was sent and by the fastest of the servers' clocks. Nor does it end while its holder
 * relies on it by the holder's own clock.
 */
export class LeaseLife implements ReferenceObserver {
  readonly #report: CoreReport;
  readonly #nowMs: () => number;
  readonly #rateMax: number;
  readonly #promisedMs = new Map<bigint, number>();
  readonly #expiredMs = new Map<bigint, number>();
  ended = 0;

  constructor(report: CoreReport, nowMs: () => number, clockRateError: number) {
    this.#report = report;
    this.#nowMs = nowMs;
    this.#rateMax = 1 + clockRateError;
  }

  /** A client was promised this TTL from the time of its request. */
  promised(id: bigint, sentMs: number, ttlMs: number): void {
    this.relied(id, sentMs + ttlMs / this.#rateMax);
  }

  /** A holder relies on its lease until this true time. */
  relied(id: bigint, untilMs: number): void {
    this.#promisedMs.set(id, Math.max(untilMs, this.#promisedMs.get(id) ?? 0));
    this.#check(id);
  }

  /** A client learned that its lease is over. */
  denied(id: bigint): void {
    const untilMs = this.#promisedMs.get(id) ?? -Infinity;
    if (this.#nowMs() < untilMs)
      this.#report("lease-life", `lease ${id} is said to be over before ${untilMs.toFixed(0)} ms`);
  }

  applied({ ended }: Applied, { body }: Command): void {
    this.ended += ended.length;
    if (body.case !== "leaseExpire") return;
    for (const id of ended) {
      this.#expiredMs.set(id, this.#nowMs());
      this.#check(id);
    }
  }

  /** Leases granted since then are lost. Leases that have ended since then exist again, without a holder. */
  replaced({ leases }: CoreState): void {
    for (const id of this.#promisedMs.keys()) if (leases.get(id) === undefined) this.#promisedMs.delete(id);
    this.#expiredMs.clear();
  }

  #check(id: bigint): void {
    const expiredMs = this.#expiredMs.get(id) ?? Infinity;
    const untilMs = this.#promisedMs.get(id) ?? -Infinity;
    if (expiredMs < untilMs)
      this.#report(
        "lease-life",
        `lease ${id} ended at ${expiredMs.toFixed(0)} ms, and was promised until ${untilMs.toFixed(0)}`,
      );
  }
}
