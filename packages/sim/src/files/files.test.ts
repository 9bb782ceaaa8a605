import { describe, expect, it } from "vitest";
import { MemoryCluster } from "leasehold/inner/testing/memory-cluster.js";
import { failureText } from "../kit/simulator.js";
import { simulateFiles, simulateFilesMany } from "./run.js";

const makeCluster = (options: { ttlMax: number; seed: number }) => new MemoryCluster(options);

/** The least counts in all runs together: well below the usual ones. */
const minima: Readonly<Record<string, number>> = {
  reads: 400,
  writes: 500,
  uncertain: 40,
  settled: 8,
  resets: 50,
  crashes: 30,
  pauses: 15,
  partitions: 30,
  isolations: 60,
  late: 200,
  rotten: 8,
  repaired: 2,
  full: 5,
  wiped: 3,
};

describe("random runs of replicated files", () => {
  it("break no invariant, and reach every case that matters", async () => {
    const { counters, failed } = await simulateFilesMany({
      makeCluster,
      firstSeed: 1,
      goOn: (runs) => runs < 24,
    });
    expect(failed && failureText(failed)).toBeUndefined();
    expect(
      Object.entries(minima).filter(([name, least]) => (counters as Record<string, number>)[name]! < least),
    ).toEqual([]);
  });

  it("a sync counts no node that a change has not reached", async () => {
    const { violation } = await simulateFiles({ makeCluster, seed: 163 });
    expect(violation).toBeUndefined();
  });

  it("a seed decides a whole run, and another seed makes another", async () => {
    const hashes: string[] = [];
    for (const seed of [7, 7, 8]) hashes.push((await simulateFiles({ makeCluster, seed })).traceHash);
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[0]).not.toBe(hashes[2]);
  });
});
