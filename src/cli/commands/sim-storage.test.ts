import { afterEach, describe, expect, it, vi } from "vitest";
import { withFaults } from "../../delta/planted-faults.js";
import { withFaults as withFleaseFaults } from "../../../test/planted/switches.js";
import type { SimCommandOptions } from "./sim.js";
import { simStorage, type StoredGround } from "./sim-storage.js";

const said: string[] = [];
vi.mock("../output/say.js", () => ({
  sayLine: (line: string) => said.push(line),
  sayLines: (lines: string[]) => said.push(...lines),
  sayProgress: () => undefined,
}));
afterEach(() => said.splice(0));

const run = (ground: StoredGround, options: SimCommandOptions) => {
  const code = simStorage(options, ground);
  return { code, text: said.splice(0).join("\n") };
};
const runJson = (ground: StoredGround, options: SimCommandOptions) => {
  const { code, text } = run(ground, { ...options, output: "json" });
  return { code, summary: JSON.parse(text) };
};

describe.each(["delta", "grid"] as const)("--ground %s", (ground) => {
  it("replays one seed", () => {
    const [first, again] = [1, 2].map(() => runJson(ground, { seed: "9" }));
    expect(first!.code).toBe(0);
    expect(first!.summary).toMatchObject({ ground, runs: 1, firstSeed: 9, hardlyHappened: [] });
    const { seconds: _first, ...one } = first!.summary;
    const { seconds: _again, ...other } = again!.summary;
    expect(other).toEqual(one);
  });

  it("counts what happened in so many runs", () => {
    const { code, text } = run(ground, { seed: "1", runs: 5 });
    expect(code).toBe(0);
    expect(text).toMatch(/^5 runs from seed 1, \d+ events in /);
    expect(text).toMatch(/tenures \d+/);
  });

  it("refuses what belongs to the simulated cluster", () => {
    expect(() => run(ground, { seed: "1", mode: "c" })).toThrow("--mode belongs to");
    expect(() => run(ground, { seed: "x" })).toThrow("a whole number");
  });
});

describe("--ground delta", () => {
  it("tells a story that does not change what happens", () => {
    const { traceHash } = runJson("delta", { seed: "9" }).summary;
    const { text } = run("delta", { seed: "9", story: true });
    expect(text).toContain("p0.0 starts");
    expect(text).toContain(`trace ${traceHash}`);
  });

  it("says how to run a violation again, whole and shortened, and both do fail", () => {
    withFaults({ noReRead: true }, () => {
      // Known to show it soon; the search goes on if it does not.
      const { code, summary } = runJson("delta", { seed: "79", runs: 300 });
      expect(code).toBe(80);
      const { invariant, replay, shortened } = summary.violation;
      const seed = /--seed (\S+)/.exec(replay)![1]!;
      const without = /--without (\S+)/.exec(shortened)![1]!;
      expect(runJson("delta", { seed }).summary.violation.invariant).toBe(invariant);
      expect(runJson("delta", { seed, without }).summary.violation.invariant).toBe(invariant);
    });
  });

  it("refuses features that are not there, and a story of many runs", () => {
    expect(() => run("delta", { seed: "7", without: "rain" })).toThrow('no feature is called "rain"');
    expect(() => run("delta", { runs: 7, story: true })).toThrow("--story needs");
  });
});

describe("--ground grid", () => {
  it("says how to run a violation again", () => {
    withFleaseFaults({ noSafetyPeriod: true }, () => {
      const { code, summary } = runJson("grid", { seed: "1", runs: 120 });
      expect(code).toBe(80);
      const seed = /--seed (\S+)/.exec(summary.violation.replay)![1]!;
      expect(runJson("grid", { seed }).summary.violation.invariant).toBe(summary.violation.invariant);
    });
  });

  it("tells no stories", () => {
    expect(() => run("grid", { seed: "7", story: true })).toThrow("--story");
  });
});
