import { createClient } from "@redis/client";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { RedisFence } from "@leasehold/fence/redis";
import { RedisServer } from "../stores/servers/redis.js";
import { type Guarded, runFenceConformance } from "./conformance.js";

let server: RedisServer;
let keys = 0;
beforeAll(async () => {
  server = await RedisServer.start({ durable: true });
});
afterAll(() => server.close());

async function clientOf(port: number) {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.destroy());
  return client;
}

async function make(at = server): Promise<Guarded<readonly (readonly string[])[]>> {
  const client = await clientOf(at.port);
  const key = `report${keys++}`;
  return {
    kind: "redis",
    place: `${at.port} ${key}`,
    fence: () => new RedisFence(client, `${key}:fence`),
    change: (text) => [["SET", key, text]],
    read: async () => (await client.get(key)) ?? "",
  };
}

describe("in Redis", () => {
  runFenceConformance(() => make());
});

test("commands run in order, and their replies are returned", async () => {
  const { fence, place } = await make();
  const key = place.split(" ")[1]!;
  const commands = [
    ["SET", key, "a b\n\u{1f600}"],
    ["INCR", `${key}:count`],
    ["GET", key],
    ["GET", "nothing"],
  ];
  expect(await fence().write(5n, commands)).toEqual(["OK", 1, "a b\n\u{1f600}", null]);
});

test("a command that fails stops the rest, but its token counts", async () => {
  const { fence, read, place } = await make();
  const key = place.split(" ")[1]!;
  const commands = [
    ["SET", key, "first"],
    ["INCR", key],
    ["SET", key, "never"],
  ];
  await expect(fence().write(5n, commands)).rejects.toThrow(/not an integer/);
  expect([await read(), await fence().greatest()]).toEqual(["first", 5n]);
});

test("a key with a value of another kind is left unchanged", async () => {
  const client = await clientOf(server.port);
  await client.set("foreign", "hello");
  await expect(new RedisFence(client, "foreign").write(5n, [["SET", "foreign:data", "x"]])).rejects.toThrow(
    /FENCE/,
  );
  expect([await client.get("foreign"), await client.get("foreign:data")]).toEqual(["hello", null]);
});

test("another client can be used through its eval", async () => {
  const client = await clientOf(server.port);
  const fence = new RedisFence(
    (script, names, values) =>
      client.sendCommand(["EVAL", script, String(names.length), ...names, ...values]),
    "by-function",
  );
  await fence.claim(7n);
  await expect(fence.claim(6n)).rejects.toMatchObject({ code: "TOKEN_STALE" });
});

test("a crash of the server loses no token if every command is flushed", async () => {
  const crashing = await RedisServer.start({ durable: true });
  onTestFinished(() => crashing.close());
  const { fence, change, read } = await make(crashing);
  await fence().write(5n, change("five"));
  await crashing.kill();
  await crashing.restart();
  await expect(fence().write(4n, change("late"))).rejects.toMatchObject({ code: "TOKEN_STALE" });
  expect(await read()).toBe("five");
});
