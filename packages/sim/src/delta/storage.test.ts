import { describe, expect, it } from "vitest";
import { duringFaults } from "../../../../test/planted/switches.js";
import { addCounters } from "../kit/counters.js";
import { type StorageCounterName, storageCounters } from "./stage/counters.js";
import { storageInvariants } from "./stage/invariants.js";
import { type Ground, grounds } from "./stage/plan.js";
import { failureText } from "../kit/simulator.js";
import { simulateStorage, simulateStorageMany } from "./run.js";

const runsEach = 24;

/** There a writer takes 17 leases, so one run takes as long as several others. */
const runsOf = (ground: Ground) => (ground === "forms" || ground === "counted" ? runsEach / 3 : runsEach);

/** The least counts in all runs together: well below the usual ones. */
const minima: Partial<Record<StorageCounterName, number>> = {
  tenures: 300,
  renewals: 1_000,
  releases: 200,
  lateReleases: 20,
  sharedTenures: 100,
  countedTenures: 60,
  reads: 400,
  writes: 300,
  guardedWrites: 500,
  guardRefusals: 5,
  leaderships: 1_000,
  decisions: 30,
  crashes: 50,
  pauses: 20,
  stalls: 20,
  lateWrites: 50,
  forgettings: 1,
  replacements: 1,
  departures: 1,
  silentStores: 20,
  cancellations: 100,
  tornWrites: 50,
  broken: 10,
  releaseRequests: 10,
  detached: 1,
  adopted: 1,
};

describe("random runs on shared storage", () => {
  const total = storageCounters();

  it.each(grounds)("break nothing on the ground %s", async (ground) => {
    const { counters, failed } = await simulateStorageMany({
      firstSeed: 1,
      ground,
      goOn: (runs) => runs < runsOf(ground),
    });
    expect(failed && failureText(failed)).toBeUndefined();
    addCounters(total, counters);
  });

  it("reach every case that matters", () => {
    const tooRare = Object.entries(minima).filter(
      ([name, least]) => total[name as StorageCounterName] < least,
    );
    expect(tooRare).toEqual([]);
  });
});

it("a seed decides a whole run, and another seed makes another", async () => {
  for (const ground of grounds) {
    const hashes: string[] = [];
    for (const seed of [7, 7, 8]) hashes.push((await simulateStorage({ seed, ground })).traceHash);
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[0]).not.toBe(hashes[2]);
  }
});

it("the paper's own way to count Δ, from the return of contend, is sound with its Δ + 6δ", async () => {
  // Renewals are not judged: by this way of counting they may begin when almost no time is left.
  const judged = storageInvariants.filter((invariant) => invariant !== "renewal");
  const { failed } = await duringFaults({ holdFromReturn: true }, () =>
    simulateStorageMany({ firstSeed: 1, ground: "paper", only: judged, goOn: (runs) => runs < runsEach }),
  );
  expect(failed && failureText(failed)).toBeUndefined();
});
