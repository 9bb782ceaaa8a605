import { describe, expect, test } from "vitest";
import { VirtualWorld } from "./virtual-world.js";

const sleep = (world: VirtualWorld, ms: number) =>
  new Promise<void>((resolve) => void world.timers.after(ms, resolve));

describe("advance", () => {
  test("runs timers in order, each at its time, with the promises that wait for it in between", async () => {
    const world = new VirtualWorld();
    const startMs = world.clock.wallMs();
    const log: string[] = [];
    const note = (what: string) => log.push(`${what} at ${world.clock.monotonicMs()}`);
    world.timers.after(20, () => note("second"));
    world.timers.after(10, () => note("first"));
    world.timers.after(20, () => note("third"));
    void (async () => {
      await sleep(world, 10);
      for (let hop = 0; hop < 50; hop += 1) await Promise.resolve();
      note("continued");
      await sleep(world, 5);
      note("slept again");
    })();
    await world.advance("1s");
    expect(log).toEqual([
      "first at 10",
      "continued at 10",
      "slept again at 15",
      "second at 20",
      "third at 20",
    ]);
    expect(world.clock.monotonicMs()).toBe(1_000);
    expect(world.clock.wallMs() - startMs).toBe(1_000);
    expect(world.pendingTimers).toBe(0);
  });

  test("does not run timers that are due later, or were cancelled", async () => {
    const world = new VirtualWorld();
    let ran = 0;
    world.timers.after(11, () => ran++);
    const cancelled = world.timers.after(5, () => ran++);
    cancelled.cancel();
    cancelled.cancel();
    await world.advance(10);
    expect(ran).toBe(0);
    expect(world.pendingTimers).toBe(1);
    await world.advance(1);
    expect(ran).toBe(1);
  });

  test("called concurrently, each call takes at least its own time", async () => {
    const world = new VirtualWorld();
    const ends: [number, number][] = [];
    const pass = async (ms: number) => {
      await world.advance(ms);
      ends.push([ms, world.clock.monotonicMs()]);
    };
    world.timers.after(5, () => void pass(3));
    await Promise.all([pass(10), pass(20), pass(5)]);
    await world.settle();
    expect(ends).toEqual([
      [10, 10],
      [20, 20],
      [5, 20],
      [3, 20],
    ]);
  });

  test("rejects with the error of a timer, and continues the next time", async () => {
    const world = new VirtualWorld();
    world.timers.after(5, () => {
      throw new Error("in a timer");
    });
    await expect(world.advance(10)).rejects.toThrow("in a timer");
    await world.advance(10);
    expect(world.clock.monotonicMs()).toBeGreaterThanOrEqual(15);
    await expect(world.advance("soon")).rejects.toThrow(/not a duration/);
  });
});

test("block advances both clocks and runs nothing; overdue timers run late, in order", async () => {
  const world = new VirtualWorld();
  const log: number[] = [];
  const wallMs = world.clock.wallMs();
  world.timers.after(20, () => log.push(world.clock.monotonicMs()));
  world.timers.after(10, () => log.push(world.clock.monotonicMs()));
  world.block("1s");
  expect(log).toEqual([]);
  expect(world.clock.wallMs() - wallMs).toBe(1_000);
  await world.advance(0);
  expect(log).toEqual([1_000, 1_000]);
});

test("suspend and stepWall advance the system clock alone", () => {
  const world = new VirtualWorld();
  const wallMs = world.clock.wallMs();
  world.suspend("1h");
  world.stepWall(-600_000);
  expect(world.clock.wallMs() - wallMs).toBe(3_000_000);
  expect(world.clock.monotonicMs()).toBe(0);
});

test("the same seed gives the same random numbers", () => {
  const draw = (seed: number) => {
    const world = new VirtualWorld({ seed });
    return Array.from({ length: 5 }, () => world.random.next());
  };
  expect(draw(3)).toEqual(draw(3));
  expect(draw(3)).not.toEqual(draw(4));
});
