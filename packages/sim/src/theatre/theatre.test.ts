import { describe, expect, it, test } from "vitest";
import { simulate } from "../flease/run.js";
import { recordRun } from "./runs.js";
import { recordScene, scenes } from "./scenes.js";

describe("the scenes", () => {
  test.each(scenes)("$id is told to its end", async (scene) => {
    const { steps, violation } = await recordScene(scene);
    const told = steps.map(({ text }) => text).join("\n");
    expect(violation?.invariant).toBe(scene.withoutWait === true ? "I1" : undefined);
    expect(told).toContain("A HOLDS backup");
    const tells = (text: string) => told.includes(text);
    const takenOver = ["acquire", "crash", "frozen", "partition", "restart", "mistake"].includes(scene.id);
    expect(!takenOver || tells("B HOLDS backup")).toBe(true);
    expect(scene.id === "clocks" && tells("B HOLDS")).toBe(false);
    expect(scene.id !== "members" || tells("enters view 3")).toBe(true);
  });
});

it("a recorded run is the run of its seed", async () => {
  const { traceHash, steps } = await recordRun({ seed: 9, mode: "c", without: [] });
  expect(traceHash).toBe((await simulate({ seed: 9, mode: "c" })).traceHash);
  expect(steps.length).toBeGreaterThan(100);
});
