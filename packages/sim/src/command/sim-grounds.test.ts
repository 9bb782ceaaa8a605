import { afterEach, describe, expect, it, vi } from "vitest";
import { duringFaults } from "../../../../test/planted/switches.js";
import type { SimCommandOptions } from "./sim-batch.js";
import { type Ground, sim } from "./sim.js";

const said: string[] = [];
vi.mock("leasehold/inner/cli/output/print.js", () => ({
  printLine: (line: string) => said.push(line),
  printLines: (lines: string[]) => said.push(...lines),
  printProgress: () => undefined,
}));
afterEach(() => said.splice(0));

const run = async (ground: Ground, options: SimCommandOptions) => {
  const code = await sim({ ...options, ground });
  return { code, text: said.splice(0).join("\n") };
};
const runJson = async (ground: Ground, options: SimCommandOptions) => {
  const { code, text } = await run(ground, { ...options, output: "json" });
  return { code, summary: JSON.parse(text) };
};

describe.each(["delta", "grid"] as const)("--ground %s", (ground) => {
  it("replays one seed", async () => {
    const [first, again] = [await runJson(ground, { seed: "9" }), await runJson(ground, { seed: "9" })];
    expect(first.code).toBe(0);
    expect(first.summary).toMatchObject({ ground, runs: 1, firstSeed: 9, hardlyHappened: [] });
    const { seconds: _first, eventsPerSecond: _itsRate, ...one } = first.summary;
    const { seconds: _again, eventsPerSecond: _rate, ...other } = again.summary;
    expect(other).toEqual(one);
  });

  it("counts what happened in so many runs", async () => {
    const { code, text } = await run(ground, { seed: "1", runs: 5 });
    expect(code).toBe(0);
    expect(text).toMatch(/^5 runs from seed 1, \d+ events in /);
    expect(text).toMatch(/tenures \d+/);
  });

  it("refuses options of the simulated cluster", async () => {
    await expect(run(ground, { seed: "1", mode: "c" })).rejects.toThrow("--mode belongs to");
    await expect(run(ground, { seed: "x" })).rejects.toThrow("a whole number");
  });
});

describe("--ground delta", () => {
  it("prints a trace without changing the run", async () => {
    const { traceHash } = (await runJson("delta", { seed: "9" })).summary;
    const { text } = await run("delta", { seed: "9", story: true });
    expect(text).toContain("p0.0 starts");
    expect(text).toContain(`trace ${traceHash}`);
  });

  it("says how to run a violation again, whole and shortened, and both do fail", async () => {
    await duringFaults({ noReRead: true }, async () => {
      // This seed is known to show it soon; the search continues if it does not.
      const { code, summary } = await runJson("delta", { seed: "79", runs: 300 });
      expect(code).toBe(80);
      const { invariant, replay, shortened } = summary.violation;
      const seed = /--seed (\S+)/.exec(replay)![1]!;
      const without = /--without (\S+)/.exec(shortened)![1]!;
      expect((await runJson("delta", { seed })).summary.violation.invariant).toBe(invariant);
      expect((await runJson("delta", { seed, without })).summary.violation.invariant).toBe(invariant);
    });
  });

  it("refuses unknown features, and a trace of many runs", async () => {
    await expect(run("delta", { seed: "7", without: "rain" })).rejects.toThrow('no feature is called "rain"');
    await expect(run("delta", { runs: 7, story: true })).rejects.toThrow("--story needs");
  });
});

describe("--ground grid", () => {
  it("says how to run a violation again", async () => {
    await duringFaults({ noSafetyPeriod: true }, async () => {
      const { code, summary } = await runJson("grid", { seed: "1", runs: 120 });
      expect(code).toBe(80);
      const seed = /--seed (\S+)/.exec(summary.violation.replay)![1]!;
      expect((await runJson("grid", { seed })).summary.violation.invariant).toBe(summary.violation.invariant);
    });
  });

  it("prints no traces", async () => {
    await expect(run("grid", { seed: "7", story: true })).rejects.toThrow("--story");
  });
});
