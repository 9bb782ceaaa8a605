import { type ChildProcess, fork } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { clusterStatus, open } from "leasehold";
import type { Lease, Leases } from "leasehold";
import { dist } from "../support/built.js";
import { Arena, report } from "./arena.js";

/** Peers that are slow, stopped, never reading, or flooding, and their effect on the others. */

const flooderPath = fileURLToPath(new URL("flooder.mjs", import.meta.url));
const megabyte = 1024 * 1024;

let arena: Arena;
let leases: Leases;
const floods: ChildProcess[] = [];

beforeEach(async () => {
  arena = await Arena.start();
  leases = await open(...arena.endpoints, { name: "victim" });
});

afterEach(async () => {
  for (const flood of floods.splice(0)) flood.kill("SIGKILL");
  await leases.close();
  await arena.close();
});

interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
}

/** Acquires and releases without a pause for `forMs`. */
async function latency(forMs: number): Promise<Latency> {
  const took: number[] = [];
  const end = performance.now() + forMs;
  for (let index = 0; performance.now() < end; index++) {
    const from = performance.now();
    const lease = await leases.acquire(`victim/${index % 100}`, { wait: "5s" });
    took.push(performance.now() - from);
    await lease.release();
  }
  took.sort((a, b) => a - b);
  const at = (part: number): number => took[Math.min(took.length - 1, Math.floor(part * took.length))]!;
  return { count: took.length, p50: at(0.5), p99: at(0.99) };
}

function words({ count, p50, p99 }: Latency): string {
  return `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms (${count})`;
}

function rssBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  return pages * 4096;
}

function startFlood(endpoint: string): ChildProcess {
  const orders = { dist, address: endpoint.replace("flease://", "") };
  const flood = fork(flooderPath, [JSON.stringify(orders)]);
  floods.push(flood);
  return flood;
}

test("a stopped member costs the others no latency beyond a majority, and no memory beyond a bound", async () => {
  const held: Lease[] = [];
  for (let index = 0; index < 50; index++) held.push(await leases.acquire(`held/${index}`));
  await latency(1_000);
  const before = await latency(2_000);
  const rssBefore = ["a", "b"].map((id) => rssBytes(arena.memberPid(id)));
  const own = process.memoryUsage.rss();
  arena.stop(arena.memberPid("c"));
  const during = await latency(6_000);
  const grown = ["a", "b"].map((id, index) => rssBytes(arena.memberPid(id)) - rssBefore[index]!);
  const ownGrown = process.memoryUsage.rss() - own;
  report(`before: ${words(before)}; one stopped: ${words(during)}`);
  report(
    `grown: members ${grown.map((bytes) => (bytes / megabyte).toFixed(1)).join(", ")} MiB, client ${(ownGrown / megabyte).toFixed(1)} MiB`,
  );
  expect(during.p50).toBeLessThan(Math.max(5, 4 * before.p50));
  expect(during.p99).toBeLessThan(Math.max(50, 10 * before.p99));
  // 4 MiB for the peer that doesn't read, and slack for late garbage collection.
  for (const bytes of grown) expect(bytes).toBeLessThan(48 * megabyte);
  expect(ownGrown).toBeLessThan(64 * megabyte);
  for (const lease of held) lease.assertHeld(200);
  arena.continueAll();
});

test("clients that connect and never read cost a bounded amount of memory, and the others no time", async () => {
  const before = await latency(1_500);
  const pid = arena.memberPid("a");
  const rssBefore = rssBytes(pid);
  // A stopped flooder: its requests are answered, and nobody reads the answers.
  const flood = startFlood(arena.endpoints[0]!);
  await new Promise((resolve) => flood.once("message", resolve));
  process.kill(flood.pid!, "SIGSTOP");
  const silent = connect({ host: "127.0.0.1", port: Number(arena.endpoints[0]!.split(":").at(-1)) });
  silent.on("error", () => undefined);
  const during = await latency(4_000);
  silent.destroy();
  const grown = rssBytes(pid) - rssBefore;
  report(
    `before: ${words(before)}; beside a deaf client: ${words(during)}; grown ${(grown / megabyte).toFixed(1)} MiB`,
  );
  expect(during.p50).toBeLessThan(Math.max(5, 4 * before.p50));
  expect(grown).toBeLessThan(64 * megabyte);
});

test("a client that floods every member is slowed, the others are not: no renewal is late", async () => {
  const held: Lease[] = [];
  for (let index = 0; index < 50; index++) held.push(await leases.acquire(`held/${index}`));
  let leastMs = Infinity;
  const watch = setInterval(() => {
    for (const lease of held) leastMs = Math.min(leastMs, lease.remaining());
  }, 20);
  await latency(1_000);
  const before = await latency(2_000);
  const pids = ["a", "b", "c"].map((id) => arena.memberPid(id));
  const rssBefore = pids.map(rssBytes);
  for (const endpoint of arena.endpoints) startFlood(endpoint);
  await sleep(1_500);
  leastMs = Infinity;
  const during = await latency(6_000);
  clearInterval(watch);
  const grown = pids.map((pid, index) => rssBytes(pid) - rssBefore[index]!);
  const [status] = await clusterStatus(arena.endpoints[0]!);
  report(
    `before: ${words(before)}; in the flood: ${words(during)}; least left of a lease: ${leastMs.toFixed(0)} ms`,
  );
  report(`grown ${grown.map((bytes) => (bytes / megabyte).toFixed(1)).join(", ")} MiB`);
  if (status?.reachable) {
    const { counters } = status.status;
    report(`reads put off: ${counters["reads.putOff"]} of ${counters["messages.received"]} messages`);
  }
  for (const lease of held) lease.assertHeld();
  // A renewal is sent when a third of the lease has passed. Half of the lease left means that no renewal had
  // to be repeated.
  expect(leastMs).toBeGreaterThan(1_000);
  expect(during.p99).toBeLessThan(150);
  for (const bytes of grown) expect(bytes).toBeLessThan(64 * megabyte);
});

test("a member writes nothing, so a disk that is full or slow changes nothing", async () => {
  await latency(1_000);
  for (const id of ["a", "b", "c"]) {
    const folder = `/proc/${arena.memberPid(id)}/fd`;
    const writable = readdirSync(folder).flatMap((fd) => {
      const target = readlinkSync(`${folder}/${fd}`);
      const flags = /flags:\s+(\d+)/.exec(
        readFileSync(`/proc/${arena.memberPid(id)}/fdinfo/${fd}`, "utf8"),
      )?.[1];
      const isFile = target.startsWith("/") && !target.startsWith("/dev/");
      return isFile && (Number.parseInt(flags ?? "0", 8) & 3) !== 0 ? [target] : [];
    });
    expect(writable).toEqual([]);
  }
});
