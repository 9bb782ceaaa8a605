import { once } from "node:events";
import { type IncomingMessage, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";
import { afterEach, expect, it } from "vitest";
import { startGateway } from "../index.js";

const ends: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A watching client, and what it has read: the last state of each name. */
async function watcher(url: string): Promise<{
  answer: IncomingMessage;
  states: Map<string, string>;
  counts: { resets: number; events: number };
  tokens: Map<string, bigint>;
}> {
  const request = get(`${url}/v1/watch`);
  request.on("error", () => undefined);
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  ends.push(() => void request.destroy());
  const states = new Map<string, string>();
  const tokens = new Map<string, bigint>();
  const counts = { resets: 0, events: 0 };
  let text = "";
  answer.setEncoding("utf8").on("error", () => undefined);
  answer.on("data", (chunk: string) => {
    text += chunk;
    const whole = text.split("\n\n");
    text = whole.pop() ?? "";
    for (const frame of whole) {
      const event = /^event: (.*)$/m.exec(frame)?.[1];
      if (event === "reset") counts.resets += 1;
      if (event !== "held" && event !== "free") continue;
      counts.events += 1;
      const { resource, token } = JSON.parse(/^data: (.*)$/m.exec(frame)![1]!) as Record<string, string>;
      states.set(resource!, event);
      const before = tokens.get(resource!) ?? 0n;
      expect(BigInt(token!) >= before).toBe(true);
      tokens.set(resource!, BigInt(token!));
    }
  });
  return { answer, states, counts, tokens };
}

it("a client that reads slowly receives all held leases, and the newest change of each name", async () => {
  const leases = await open("memory:gateway-events");
  const other = await open("memory:gateway-events");
  const gateway = await startGateway(leases, { address: "127.0.0.1:0" });
  ends.push(
    () => leases.close(),
    () => other.close(),
    () => gateway.close(),
  );
  const data = "x".repeat(1_000);
  const names = Array.from({ length: 4_000 }, (_, index) => `many/${index}`);
  const held = new Map(
    await Promise.all(names.map(async (name) => [name, await other.acquire(name, { data })] as const)),
  );
  // More than the buffers of sockets and processes hold.
  const slow = await watcher(gateway.url);
  slow.answer.pause();
  const quick = await watcher(gateway.url);
  await expect.poll(() => quick.states.size).toBe(names.length);
  expect(quick.counts).toEqual({ resets: 1, events: names.length });

  for (const name of names.slice(0, 50)) await held.get(name)!.release();
  for (let turn = 0; turn < 20; turn += 1) {
    const again = await other.acquire("many/turns");
    await sleep(5);
    await again.release();
  }
  await expect.poll(() => [...quick.states.values()].filter((state) => state === "free").length).toBe(51);
  slow.answer.resume();
  await expect.poll(() => slow.states.get("many/turns")).toBe("free");
  await expect
    .poll(() => [...slow.states.values()].filter((state) => state === "held").length)
    .toBe(names.length - 50);
  expect(slow.counts.resets).toBe(1);
  // The slow client received fewer events, as changes of one name were merged.
  expect(slow.counts.events).toBeLessThan(quick.counts.events);
  expect(slow.tokens.get("many/turns")).toBe(quick.tokens.get("many/turns"));
  expect(gateway.status().watches).toBe(2);
});
