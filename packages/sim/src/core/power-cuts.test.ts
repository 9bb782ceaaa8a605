import { expect, test } from "vitest";
import { failureText } from "../kit/simulator.js";
import { simulateCoreMany } from "./run.js";

/** Disks are slow, and crashes are more frequent than writes: unsynced data is lost again and again. */
const powerCuts = {
  servers: 3,
  electionTicks: 4,
  latencyMs: 3,
  lossRate: 0,
  writeMs: 150,
  // Writes are shorter than an election timeout: no leader may be deposed.
  calmWriteMs: 10,
  slowDiskFactor: 1,
  crashEveryMs: 400,
  downMsMax: 100,
  partitionEveryMs: Infinity,
  pauseEveryMs: Infinity,
  transferEveryMs: Infinity,
  watchClients: 0,
  bulkKeys: 0,
  turnMs: 0,
  limits: {},
  thinkMs: 100,
};

test("servers that lose what they have not synced, again and again, lose nothing that was acknowledged", async () => {
  const { counters, failed } = await simulateCoreMany({
    firstSeed: 1,
    plan: powerCuts,
    goOn: (runs) => runs < 8,
  });
  expect(failed && failureText(failed)).toBeUndefined();
  expect(counters.crashes).toBeGreaterThan(200);
  expect(counters.operations).toBeGreaterThan(500);
});
