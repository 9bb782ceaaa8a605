import { expect, it } from "vitest";
import { withFaults } from "../../../../test/planted/switches.js";
import { noBounds } from "./bounds.js";
import { FleaseModel, fleaseWorld } from "./flease-model.js";
import { PublishedModel } from "./published.js";
import { explore } from "./search.js";

it("the explorer finds the two holders of F1 in the algorithms as published, with perfect clocks", () => {
  const model = new PublishedModel({ skew: 0, ttlMax: 1 });
  const bounds = { ...noBounds, clockDifferenceMax: 0, timeMax: 1, crashes: 1, checkGuards: false };
  const { finding } = explore(model, { bounds });
  expect(finding?.invariant).toBe("I1");
  expect(finding?.steps.filter((step) => step.includes("crashes"))).toHaveLength(1);
});

it("the explorer finds nothing in the algorithms as published as long as nobody crashes", () => {
  const model = new PublishedModel({ skew: 0, ttlMax: 1 });
  const bounds = { ...noBounds, clockDifferenceMax: 0, timeMax: 1, checkGuards: false };
  expect(explore(model, { bounds })).toMatchObject({ complete: true, finding: undefined });
});

it("the explorer sees every state of a small world of ours, and always as many", () => {
  const model = new FleaseModel(fleaseWorld({ skew: 0, fast: true, twoPhase: false }));
  const bounds = { ...noBounds, clockDifferenceMax: 0, timeMax: 1, crashes: 1 };
  const once = withFaults({ rateTestOff: true }, () => explore(model, { bounds }));
  expect(once).toMatchObject({ complete: true, finding: undefined });
  expect(once.states).toBeGreaterThan(2_000);
  const again = withFaults({ rateTestOff: true }, () => explore(model, { bounds }));
  expect(again.states).toBe(once.states);
});

it("the explorer prints the shortest path to two holders, with one name for each acceptor", () => {
  const model = new FleaseModel(fleaseWorld({ skew: 0, fast: true, twoPhase: false }));
  const bounds = { ...noBounds, clockDifferenceMax: 0, timeMax: 0, checkGuards: false };
  const { finding } = withFaults({ smallQuorum: true, rateTestOff: true }, () => explore(model, { bounds }));
  expect(finding?.steps).toMatchInlineSnapshot(`
    [
      "p0 acquires fast at 0",
      "a0 gets p0.1's ACQ (0.0,0) until 2 for 2 at 0: ACK (0.0,0)",
      "p0 gets ACK (0.0,0) of a0 at 0",
      "p1 acquires fast at 0",
      "a1 gets p1.1's ACQ (0.0,0) until 2 for 2 at 0: ACK (0.0,0)",
      "p1 gets ACK (0.0,0) of a1 at 0",
    ]
  `);
});

it("the explorer stops at its bound of states, and reports that it has not seen all", () => {
  const model = new FleaseModel(fleaseWorld({ steadyClocks: true }));
  expect(explore(model, { bounds: noBounds, statesMax: 1_000 }).complete).toBe(false);
});

it("the explorer refuses a world whose steady clocks stand still while their test is on", () => {
  expect(() => explore(new FleaseModel(fleaseWorld({})), { bounds: noBounds })).toThrow(
    "their test must be off",
  );
});
