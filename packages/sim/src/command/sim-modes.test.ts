import { expect, it, vi } from "vitest";
import { runsThatShowAll, sim } from "./sim.js";
import { clockModes } from "../kit/clocks.js";

const said: string[] = [];
vi.mock("leasehold/inner/cli/output/print.js", () => ({
  printLine: (line: string) => said.push(line),
  printLines: (lines: string[]) => said.push(...lines),
  printProgress: () => {},
}));

it.each(clockModes)("a batch of mode %s reaches every event", async (mode) => {
  const code = await sim({ seed: "0", runs: runsThatShowAll, mode, output: "json" });
  expect(JSON.parse(said.splice(0).join("\n")).hardlyHappened).toEqual([]);
  expect(code).toBe(0);
});
