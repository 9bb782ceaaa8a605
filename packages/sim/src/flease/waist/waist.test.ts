import { describe, expect, it } from "vitest";
import { abortKeepsTheTurn, hintsAreLost, neverRenews } from "../../../../../test/planted/waist-mistakes.js";
import { allCheckers } from "../checkers/index.js";
import { drawPlan } from "../stage/plan.js";
import { SimRandom } from "../../kit/random.js";
import { failureText, shorten } from "../../kit/simulator.js";
import { features } from "../features.js";
import { simulate, simulateMany } from "../run.js";
import type { SimOptions } from "../run.js";
import { World } from "../world.js";

/** A run in which programs lead, ask, break, abort and leave, in calm weather at last. */
const busySeed = 1_000;

const runPlan = async (change: Partial<ReturnType<typeof drawPlan>["waist"]>, watched = true) => {
  const random = new SimRandom(busySeed);
  const drawn = drawPlan(busySeed, "c", random);
  const nodes = drawn.settings.members.length + drawn.clients;
  const waist = {
    nodes: Array.from({ length: nodes }, (_, node) => node),
    programsEach: 2,
    jobsEach: 0,
    sharersEach: 0,
    electRate: 0.3,
    tryRate: 0.1,
    queryRate: 0.2,
    breakRate: 0.1,
    abortRate: 0.2,
    shortRate: 0.2,
    ...change,
  };
  const world = new World({
    plan: { ...drawn, waist, calmMs: 30_000 },
    random,
    checkers: watched ? allCheckers : () => [],
    asserted: () => watched,
  });
  await world.run();
  return world;
};

describe("a world whose programs all use the waist", () => {
  it("depends on its seed only, not on its checkers or other work of the process", async () => {
    const hash = (await runPlan({})).hash.digest();
    expect((await runPlan({}, false)).hash.digest()).toBe(hash);
    const others = new AbortController();
    const other = (async () => {
      while (!others.signal.aborted) await undefined;
    })();
    expect((await runPlan({})).hash.digest()).toBe(hash);
    others.abort();
    await other;
  });

  it("covers all calls of programs, and breaks no invariant", async () => {
    const { violation, counters } = await runPlan({});
    expect(violation).toBeUndefined();
    expect(counters.automaticRenewals).toBeGreaterThan(3);
    expect(counters.electionsWon).toBeGreaterThan(3);
    expect(counters.queriesAnswered).toBeGreaterThan(3);
  });

  it("never has more holders of a pool, or readers beside a writer, than are allowed", async () => {
    const { violation, counters } = await runPlan({ programsEach: 1, sharersEach: 2 });
    expect(violation).toBeUndefined();
    expect(counters.shares).toBeGreaterThan(20);
  });

  it.each([
    ["electRate", "electionsWon"],
    ["queryRate", "queriesAnswered"],
    ["breakRate", "breaks"],
  ] as const)("without its %s has no %s", async (rate, counter) => {
    expect((await runPlan({ [rate]: 0 })).counters[counter]).toBe(0);
  });
});

it("cells of three in a membership of five exclude and make progress", async () => {
  let cells = 0;
  for (let seed = 1; seed <= 40; seed += 1) {
    const result = await simulate({ seed, mode: "c" });
    expect(result.violation && failureText(result)).toBeUndefined();
    const { cellSize, members } = result.plan.settings;
    if (cellSize < members.length) cells += 1;
  }
  expect(cells).toBeGreaterThan(3);
});

it("a failure on the waist is shortened to one that still fails, and printed as a trace", async () => {
  const options: SimOptions = {
    seed: 3,
    mode: "c",
    only: ["L1"],
    without: ["jobs"],
    mistakes: { provider: abortKeepsTheTurn },
  };
  const failed = await simulate(options);
  expect(failed.violation?.invariant).toBe("L1");
  const shorter = await shorten(simulate, features.names, options, failed);
  expect(shorter.result.counters.events).toBeLessThanOrEqual(failed.counters.events);
  expect(shorter.options.without).not.toContain("waist");
  const told: string[] = [];
  const again = await simulate({ ...shorter.options, story: (line) => told.push(line) });
  expect(again.traceHash).toBe(shorter.result.traceHash);
  expect(told.at(-1)).toContain("VIOLATION L1: ");
});

describe("in fair weather on the waist", () => {
  const hammer = async (mistakes: NonNullable<SimOptions["mistakes"]>) => {
    const { counters, failed } = await simulateMany({
      firstSeed: 1,
      modes: ["c"],
      fairWeather: "waist",
      mistakes,
      goOn: (runs) => runs < 12,
    });
    expect(failed && failureText(failed)).toBeUndefined();
    return counters;
  };

  it("a lease that lapses is a lack of progress (L2)", async () => {
    const mistakes = { provider: neverRenews };
    const { violation } = await simulate({ seed: 1, mode: "c", fairWeather: "waist", mistakes });
    expect(violation?.invariant).toBe("L2");
  });

  it("no lease lapses, and a hint passes a released resource on at once", async () => {
    const sound = await hammer({});
    expect(sound.automaticRenewals).toBeGreaterThan(100);
    expect(sound.waitsServedByHint).toBeGreaterThan(40);
    const mistaken = await hammer({ provider: hintsAreLost });
    expect(mistaken.handOverMs / mistaken.handOvers).toBeGreaterThan(
      2 * (sound.handOverMs / sound.handOvers),
    );
  });
});
