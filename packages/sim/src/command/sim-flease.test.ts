import { afterEach, expect, it, vi } from "vitest";
import { duringFaults } from "../../../../test/planted/switches.js";
import { packageVersion } from "leasehold/runtime";
import { World } from "../flease/world.js";
import { runsThatShowAll, sim } from "./sim.js";
import type { SimCommandOptions } from "./sim-batch.js";

const said: string[] = [];
vi.mock("leasehold/inner/cli/output/print.js", () => ({
  printLine: (line: string) => said.push(line),
  printLines: (lines: string[]) => said.push(...lines),
  printProgress: () => {},
}));
afterEach(() => said.splice(0));

const run = async (options: SimCommandOptions) => {
  const code = await sim(options);
  return { code, text: said.splice(0).join("\n") };
};
const runJson = async (options: SimCommandOptions) => {
  const { code, text } = await run({ ...options, output: "json" });
  return { code, summary: JSON.parse(text) };
};

it("sim replays one seed with the same trace", async () => {
  const first = await runJson({ seed: "9" });
  expect(first.code).toBe(0);
  expect(first.summary.runs).toBe(1);
  expect((await runJson({ seed: `9@${packageVersion()}` })).summary.traceHash).toBe(first.summary.traceHash);
});

it("printing a trace does not change the run", async () => {
  const { traceHash } = (await runJson({ seed: "9" })).summary;
  const { text } = await run({ seed: "9", story: true });
  expect(text).toContain("starts as");
  expect(text).toContain(`trace ${traceHash}`);
});

it.each(["flease", "delta"] as const)(
  "sim prints the story of a run on %s in one JSON object",
  async (ground) => {
    const { summary } = await runJson({ seed: "9", ground, story: true });
    expect(summary.story.length).toBeGreaterThan(10);
    expect(summary.runs).toBe(1);
  },
);

it("sim names the run when the simulator itself fails", async () => {
  const refusal = vi.spyOn(World.prototype, "run").mockRejectedValueOnce(new TypeError("of its own"));
  await expect(sim({ seed: "9", mode: "c" })).rejects.toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(/failed: TypeError: of its own; .*--seed 9@\S+ --mode c --story$/),
  });
  refusal.mockRestore();
});

it("sim says how to run a violation again, whole and shortened, and the shortened run fails again", async () => {
  await duringFaults({ holderIgnoresExpiry: true }, async () => {
    const { code, summary } = await runJson({ seed: "2", runs: 50, mode: "c" });
    expect(code).toBe(80);
    const { replay, shortened, played, invariant } = summary.violation;
    expect(played).toBe(shortened.replace("--story", "--theatre"));
    const seed = /--seed (\S+)/.exec(replay)![1]!;
    const without = /--without (\S+)/.exec(shortened)![1]!;
    const again = await runJson({ seed, mode: "c", without });
    expect(again.summary.violation.invariant).toBe(invariant);
    expect(again.summary.events).toBe(summary.violation.shortenedEvents);
  });
});

it.each([
  ["a", ["impossibleClocks", "slews"]],
  ["b", ["suspensions"]],
  ["c", ["impossibleClocks", "suspensions"]],
  ["g", ["slews"]],
] as const)(
  "sim calls a batch in which nothing happens a failure in mode %s, but for %j",
  async (mode, others) => {
    const quietRun = vi.spyOn(World.prototype, "run").mockImplementation(async function (this: World) {
      this.counters.runs = 1;
      this.counters.floorRefusals = Number(this.plan.seed % 100 === 0);
    });
    const { code, summary } = await runJson({ seed: "0", runs: runsThatShowAll, mode });
    quietRun.mockRestore();
    const never = new Set<string>(["runs", "fullRefusals", "namedHeirs", ...others]);
    expect(summary.hardlyHappened).toEqual(Object.keys(summary.counters).filter((name) => !never.has(name)));
    expect(code).toBe(81);
  },
);

it.each([
  [{ seed: "x" }, "a whole number"],
  [{ seed: "7@0.0.0" }, "of version 0.0.0"],
  [{ seed: "7", without: "rain" }, 'no feature is called "rain"'],
  [{ story: true as const }, "--story needs"],
])("sim refuses %j, and says why", async (options, message) => {
  await expect(sim(options)).rejects.toThrow(message);
});
