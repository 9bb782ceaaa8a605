import { expect, test } from "vitest";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { Alarm, wakesPerTurn } from "./alarm.js";

test("of very many leases due together, each turn of the event loop wakes some, in order", async () => {
  const world = new VirtualWorld();
  const alarm = new Alarm(world);
  const woken: number[] = [];
  const turns: number[] = [];
  const count = 2 * wakesPerTurn + 5;
  for (let each = 0; each < count; each += 1) {
    const wake = () => void woken.push(each);
    alarm.set({ heapIndex: -1, wake }, 10, 0);
  }
  // Other tasks run between the alarm's turns.
  const look = () => {
    turns.push(woken.length);
    if (woken.length < count) world.timers.after(0, look);
  };
  world.timers.after(10, look);
  await world.advance(20);
  expect(turns).toEqual(expect.arrayContaining([wakesPerTurn, 2 * wakesPerTurn, count]));
  expect(woken).toEqual(Array.from({ length: count }, (_, each) => each));
});
