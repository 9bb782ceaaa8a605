import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { open, startMember } from "leasehold";
import type { Leases, Logger, Member } from "leasehold";
import { recoveryOf } from "../support/recovery.js";
import { eventually } from "../support/built.js";
import { freePorts } from "../free-ports.js";

/**
 * Two processes with one member's id. Quorums count ids: if both voted, {a, b} and {a', c} would be two
 * majorities without a common process, and there could be two holders.
 */

const settings = { ttlMax: "1s", maxClockSkew: "10ms", rpcTimeout: "150ms" };
const recoveryMs = recoveryOf({ ttlMaxMs: 1_000, maxClockSkewMs: 10, rpcTimeoutMs: 150 });

const members: Member[] = [];
const clients: Leases[] = [];
let addresses: Record<string, string>;

afterEach(async () => {
  await Promise.all([...members, ...clients].map((one) => one.close()));
  members.length = clients.length = 0;
});

class Lines implements Logger {
  readonly lines: string[] = [];
  info(): void {}
  warn(message: string): void {
    this.lines.push(message);
  }
  error(message: string): void {
    this.lines.push(message);
  }
}

async function start(id: string, listen = addresses[id]!): Promise<{ member: Member; log: Lines }> {
  const log = new Lines();
  const member = await startMember({ id, members: addresses, listen, logger: log, ...settings });
  members.push(member);
  return { member, log };
}

async function startAll(): Promise<Record<"a" | "b" | "c", { member: Member; log: Lines }>> {
  const ports = await freePorts(3);
  addresses = Object.fromEntries(["a", "b", "c"].map((id, index) => [id, `127.0.0.1:${ports[index]}`]));
  const [a, b, c] = await Promise.all([start("a"), start("b"), start("c")]);
  await Promise.all([a, b, c].map(({ member }) => member.ready()));
  return { a: a!, b: b!, c: c! };
}

test("the second process has no vote and reports why; the first goes on and is notified; the second takes over when the first has gone", async () => {
  const { a, b } = await startAll();
  const twin = await start("a", "127.0.0.1:0");
  await eventually("the second process detects it", () => twin.member.status().state === "twin");
  expect(twin.member.status().notice).toMatch(
    /another process is the member "a" already, (from 127\.0\.0\.1:\d+|connected with)/,
  );
  expect(twin.log.lines.join("\n")).toMatch(/another process is the member "a" already/);
  await eventually("the first process is notified", () => a.member.status().notice);
  expect(a.member.status()).toMatchObject({ state: "ready" });
  expect(a.member.status().notice).toMatch(/says that it is the member a too; [bc] refused it/);
  expect(a.log.lines.join("\n")).toMatch(/says that it is the member a too/);
  expect(b.log.lines.join("\n")).toMatch(/no connection from .* another process is the member "a" already/);
  expect(b.member.status().counters["rejects.sent.twin"]).toBeGreaterThan(0);
  await sleep(2 * recoveryMs);
  expect(twin.member.status().state).toBe("twin");
  const client = await open(`flease://${addresses["b"]}`);
  clients.push(client);
  await (await client.acquire("while both live", { wait: "2s" })).release();
  await a.member.close();
  const goneAt = performance.now();
  await eventually(
    "the second process takes over",
    () => twin.member.status().state === "recovering",
    20_000,
  );
  await twin.member.ready();
  expect(performance.now() - goneAt).toBeGreaterThan(recoveryMs);
});

test("a second process that nobody dials detects it by itself, and has no vote either, not even for a client that was given its address", async () => {
  const { c } = await startAll();
  const twin = await start("c", "127.0.0.1:0");
  const client = await open(`flease://${twin.member.address}`, { name: "misled", timeout: "1s" });
  clients.push(client);
  await sleep(2 * recoveryMs);
  expect(twin.member.status().state).not.toBe("ready");
  await eventually("the second process detects it", () => twin.member.status().state === "twin", 10_000);
  // With c's other process it would form a majority beside {b, c}.
  await members.find((member) => member.id === "a")!.close();
  await expect(client.acquire("r", { wait: "1s" })).rejects.toMatchObject({ code: "NO_QUORUM" });
  expect(c.member.status().state).toBe("ready");
});

test("a member started with another configuration is refused, both sides name both configurations, and it has no vote", async () => {
  const { a, b, c } = await startAll();
  await c.member.close();
  const log = new Lines();
  const other = await startMember({
    id: "c",
    members: addresses,
    logger: log,
    ...settings,
    ttlMax: "2s",
  });
  members.push(other);
  const hashes = /configuration hash.*[0-9a-f]{32}.*[0-9a-f]{32}/;
  await eventually(
    "the hashes are logged",
    () => hashes.test(a.log.lines.join("\n")) || hashes.test(log.lines.join("\n")),
  );
  expect([...a.log.lines, ...b.log.lines, ...log.lines].join("\n")).toMatch(hashes);
  await sleep(2_500);
  expect(other.status().state).toBe("recovering");
  expect(a.member.status()).toMatchObject({ state: "ready" });
  expect(a.member.status().peers.find((peer) => peer.id === "c")).toMatchObject({ connected: false });
});
