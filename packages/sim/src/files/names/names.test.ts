import { describe, expect, it } from "vitest";
import { MemoryCluster } from "leasehold/inner/testing/memory-cluster.js";
import { failureText } from "../../kit/simulator.js";
import { simulateNames, simulateNamesMany } from "./run.js";

const makeCluster = (options: { ttlMax: number; seed: number }) => new MemoryCluster(options);

const minima: Readonly<Record<string, number>> = {
  put: 200,
  read: 200,
  append: 50,
  remove: 50,
  rename: 50,
  copy: 20,
  list: 50,
  quota: 20,
  snapshot: 15,
  unsnapshot: 10,
  overQuota: 3,
  brokenOff: 15,
  stalled: 30,
  collected: 50,
  followed: 100,
  resumed: 50,
  gone: 1,
  uncertain: 20,
  crashes: 20,
  partitions: 20,
};

describe("random runs of files by path", () => {
  it("break no invariant, and reach every case that matters", async () => {
    const { counters, failed } = await simulateNamesMany({
      makeCluster,
      firstSeed: 1,
      goOn: (runs) => runs < 30,
    });
    expect(failed && failureText(failed)).toBeUndefined();
    const seldom = Object.entries(minima).filter(
      ([name, least]) => (counters as Record<string, number>)[name]! < least,
    );
    expect(seldom).toEqual([]);
    expect(counters.undecided).toBeLessThan(3);
  });

  it("a seed decides a whole run", async () => {
    const hashes: string[] = [];
    for (const seed of [7, 7, 8]) hashes.push((await simulateNames({ makeCluster, seed })).traceHash);
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[0]).not.toBe(hashes[2]);
  });
});
