import { expect, test } from "vitest";
import { latenciesOf } from "./measure.js";
import { propose } from "./proposal.js";

const measured = (p999: number, samples = 2_000) => {
  const latencies = { samples, p50: 1, p99: 2, p999 };
  return { reads: latencies, writes: latencies };
};
const atomic = { kind: "atomic", delayMs: 500 } as const;
const slotted = { kind: "slotted", delayMs: 2_000 } as const;

test("δ is several times the slowest tail and the event loop's delay, Δ twelve times δ", () => {
  const examined = [8, 81].map((p999) => ({ traits: atomic, scheme: "redis", measurement: measured(p999) }));
  expect(propose(examined, 20)).toMatchObject({ maxStoreLatencyMs: 430, ttlMaxMs: 5_160 });
});

test("no proposal is below the useful minimum", () => {
  const examined = [{ traits: atomic, scheme: "file", measurement: measured(1) }];
  expect(propose(examined, 0)).toMatchObject({ maxStoreLatencyMs: 100, ttlMaxMs: 2_000 });
});

test("object stores, and stores where exclusion depends on δ, get at least their kind's default", () => {
  const s3 = { traits: { kind: "atomic", delayMs: 2_000 } as const, scheme: "s3", measurement: measured(40) };
  expect(propose([s3], 1)).toMatchObject({ maxStoreLatencyMs: 2_000, ttlMaxMs: 24_000 });
  const block = { traits: slotted, scheme: "block", measurement: measured(3) };
  const proposal = propose([block], 1);
  expect(proposal.maxStoreLatencyMs).toBe(2_000);
  expect(proposal.reasons.at(-1)).toContain("exclusion depends on δ");
  // On these stores both phases of an operation count.
  const slow = { ...block, measurement: measured(300) };
  expect(propose([slow], 0).maxStoreLatencyMs).toBe(3_000);
});

test("a measurement that is too short is reported", () => {
  const examined = [{ traits: atomic, scheme: "file", measurement: measured(1, 200) }];
  expect(propose(examined, 0).reasons.join()).toContain("fewer than 1000 samples");
});

test("percentiles are those of the samples", () => {
  const samples = Array.from({ length: 1_000 }, (_, index) => 1_000 - index);
  expect(latenciesOf(samples)).toEqual({ samples: 1_000, p50: 500, p99: 990, p999: 999 });
  expect(latenciesOf([3])).toEqual({ samples: 1, p50: 3, p99: 3, p999: 3 });
});
