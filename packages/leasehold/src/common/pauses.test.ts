import { expect, test } from "vitest";
import { VirtualWorld } from "../testing/virtual-world.js";
import { Pauses } from "./pauses.js";

test("a pause ends by itself after its time, and before that when all are ended, without a timer left behind", async () => {
  const world = new VirtualWorld();
  const pauses = new Pauses(world.timers);
  const ended: string[] = [];
  const note = (name: string, ms: number) => void pauses.pause(ms).then(() => ended.push(name));
  note("short", 10);
  note("long", 1_000);
  await world.advance(10);
  expect(ended).toEqual(["short"]);
  pauses.end();
  await world.settle();
  expect(ended).toEqual(["short", "long"]);
  expect(world.pendingTimers).toBe(0);
});
