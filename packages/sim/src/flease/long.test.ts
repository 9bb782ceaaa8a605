import { expect, it } from "vitest";
import { duringFaults } from "../../../../test/planted/switches.js";
import { addCounters } from "../kit/counters.js";
import { fleaseCounters } from "./stage/counters.js";
import { failureText } from "../kit/simulator.js";
import { simulateMany } from "./run.js";

/**
 * A long search by hand: `SIM_MINUTES=10 npx vitest run --project random src/flease/long.test.ts`,
 * with `SIM_SEED` to begin elsewhere. It prints what was done, and for a failure the seed and mode with which
 * `simulate` runs it again.
 */
const minutes = Number(process.env["SIM_MINUTES"] ?? 0);
const firstSeed = Number(process.env["SIM_SEED"] ?? 1_000_000);

/** How many runs are made with one configuration of the nets before the next one. */
const runsInTurn = 60;

const nets = [{}, { netBOff: true }, { netGOff: true }];

it.runIf(minutes > 0)(
  `random runs of ${minutes} minutes break no invariant`,
  async () => {
    const endMs = performance.now() + minutes * 60_000;
    const counters = fleaseCounters();
    const failures: string[] = [];
    for (let seed = firstSeed, turn = 0; performance.now() < endMs; turn += 1) {
      const faults = nets[turn % nets.length]!;
      let done = 0;
      const batch = await duringFaults(faults, () =>
        simulateMany({ firstSeed: seed, goOn: (runs) => (done = runs) < runsInTurn }),
      );
      addCounters(counters, batch.counters);
      if (batch.failed !== undefined) failures.push(`${JSON.stringify(faults)} ${failureText(batch.failed)}`);
      // A failure ends its batch, so the search continues after it, in step with the clock modes.
      seed += batch.failed === undefined ? runsInTurn : done + 1;
    }
    process.stdout.write(`${JSON.stringify({ failures, ...counters }, undefined, 1)}\n`);
    expect(failures).toEqual([]);
  },
  (minutes + 1) * 60_000,
);
