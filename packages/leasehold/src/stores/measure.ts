import type { Store, StoreAnswer, StoreRequest } from "../delta/store.js";
import { probeRegister } from "./common/probe.js";
import { operationMsMax } from "./common/server-limits.js";
import { unlessAborted } from "../common/abort-watch.js";

/** More samples than this don't improve the 99.9th percentile, and would fill memory. */
export const samplesMax = 20_000;

/** About the size of a record. */
const recordBytes = 400;

/** The latencies of one kind of operation, ms. */
export interface Latencies {
  readonly samples: number;
  readonly p50: number;
  readonly p99: number;
  /** With fewer than a thousand samples, the maximum. */
  readonly p999: number;
}

export interface Measurement {
  readonly reads: Latencies;
  /** `replace` on an atomic store, `put` on a slotted one. */
  readonly writes: Latencies;
}

/** Called after each sample; returning false ends the measurement. */
export type GoOn = () => boolean;

/**
 * Reads and writes alternately, one operation at a time, on the register of probes, whose content nobody
 * needs.
 *
 * Rejects with the store's own error when an operation fails.
 */
export async function measureStore(store: Store, goOn: GoOn): Promise<Measurement> {
  const reads: number[] = [];
  const writes: number[] = [];
  do {
    const seen = await timed(reads, store, { op: "read", register: probeRegister });
    const cell = "cells" in seen ? seen.cells[0] : undefined;
    const write: StoreRequest =
      store.traits.kind === "slotted"
        ? { op: "put", register: probeRegister, next: filling() }
        : { op: "replace", register: probeRegister, id: seen.id, expected: cell, next: filling() };
    await timed(writes, store, write);
  } while (goOn() && writes.length < samplesMax);
  return { reads: latenciesOf(reads), writes: latenciesOf(writes) };
}

/** Unique content with a record's size, which a concurrent probe can recognize. */
function filling(): Uint8Array {
  return new TextEncoder().encode(
    `leasehold-doctor ${globalThis.crypto.randomUUID()} `.padEnd(recordBytes, "-"),
  );
}

async function timed(
  samples: number[],
  store: Store,
  request: StoreRequest,
): Promise<Exclude<StoreAnswer, { kind: "failed" }>> {
  const begun = performance.now();
  const signal = AbortSignal.timeout(operationMsMax);
  const answer = await unlessAborted(store.perform(request, { signal }), signal);
  samples.push(performance.now() - begun);
  if (answer.kind === "failed") throw answer.error;
  return answer;
}

export function latenciesOf(samples: readonly number[]): Latencies {
  const sorted = Float64Array.from(samples).sort();
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? 0;
  return { samples: sorted.length, p50: at(0.5), p99: at(0.99), p999: at(0.999) };
}
