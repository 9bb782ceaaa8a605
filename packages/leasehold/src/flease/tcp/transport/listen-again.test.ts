import { expect, test } from "vitest";
import { VirtualWorld } from "../../../testing/virtual-world.js";
import { listenAgain } from "./listen-again.js";
import type { Transport } from "./transport.js";

function failing(times: number) {
  const attempts: string[] = [];
  const transport = {
    listen: (address: string) => {
      attempts.push(address);
      return attempts.length <= times ? Promise.reject(new Error("in use")) : Promise.resolve(address);
    },
  } as unknown as Transport;
  const errors: string[] = [];
  const events = { log: (_id: string, text: string) => void errors.push(text) };
  return { attempts, errors, transport, events };
}

test("a member that can no longer listen retries until it can, and logs each failure", async () => {
  const world = new VirtualWorld();
  const { attempts, errors, transport, events } = failing(2);
  const done = listenAgain(transport, "h:1", () => true, world.timers, events);
  await world.advance("3s");
  await done;
  expect([attempts.length, errors.length]).toEqual([3, 2]);
});

test("a member stops trying to listen when it is no longer wanted", async () => {
  const world = new VirtualWorld();
  const { attempts, transport, events } = failing(99);
  let wanted = true;
  const done = listenAgain(transport, "h:1", () => wanted, world.timers, events);
  await world.advance("2500ms");
  wanted = false;
  await world.advance("2s");
  await done;
  expect(attempts.length).toBe(3);
});
