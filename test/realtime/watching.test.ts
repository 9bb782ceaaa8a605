import { afterAll, beforeAll, expect, test } from "vitest";
import { open } from "leasehold";
import type { Change, Leases, OpenOptions } from "leasehold";
import { startLocalCluster } from "../support/local-cluster.js";
import type { LocalCluster } from "../support/local-cluster.js";

/** Watching and listing over real sockets while members go, with cells of three among five members. */

let cluster: LocalCluster;
const opened: Leases[] = [];

beforeAll(async () => {
  cluster = await startLocalCluster({ cellSize: 3 }, 5);
});

afterAll(async () => {
  await Promise.all(opened.map((leases) => leases.close()));
  await cluster.close();
});

async function client(name: string, options: OpenOptions = {}): Promise<Leases> {
  const leases = await open(...cluster.urls, { name, ...options });
  opened.push(leases);
  return leases;
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Collects the changes that a watch reports. */
function collect(leases: Leases, prefix: string): { changes: Change[]; stop: () => Promise<void> } {
  const changes: Change[] = [];
  const controller = new AbortController();
  const reading = (async () => {
    for await (const change of leases.watch(prefix, { signal: controller.signal })) changes.push(change);
  })();
  return {
    changes,
    stop: () => {
      controller.abort();
      return reading;
    },
  };
}

async function eventually(what: string, isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries += 1) {
    if (tries > 500) throw new Error(`${what} did not happen`);
    await sleep(20);
  }
}

test("an observer may watch and list, but not break a lease or request its release", async () => {
  const observer = await client("observer", { role: "observer" });
  const lease = await (await client("holder", { label: "night shift" })).acquire("seen");
  const { changes, stop } = collect(observer, "seen");
  await eventually("the change", () => changes.length > 0);
  expect(changes[0]).toMatchObject({ resource: "seen", state: "held", token: lease.token });
  expect(changes[0]!.label).toMatch(/ pid \d+: night shift$/);
  expect(await observer.explain("seen")).toMatchObject({ state: "held", confirmed: true, quorum: true });
  await expect(observer.break("seen")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  await expect(observer.requestRelease("seen")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  await sleep(1_200);
  expect(lease.remaining()).toBeGreaterThan(0);
  expect(lease.releaseRequested.aborted).toBe(false);
  await lease.release();
  await eventually("the release", () => changes.at(-1)?.state === "free");
  await stop();
});

test("a thousand resources and more are listed and watched completely, over all cells", async () => {
  const holder = await client("many");
  const names = Array.from({ length: 1_200 }, (_, index) => `many/${String(index).padStart(4, "0")}`);
  await Promise.all(names.map((name) => holder.acquire(name)));
  const watcher = await client("watcher");
  expect((await watcher.list("many/")).map(({ resource }) => resource)).toEqual(names);
  const { changes, stop } = collect(watcher, "many/");
  await eventually("all", () => changes.length >= names.length);
  expect(changes.map(({ resource }) => resource).sort()).toEqual(names);
  await stop();
  await holder.close();
});

test("a watch continues when members go, and lists report what is missing", async () => {
  const holder = await client("keeper");
  const asker = await client("asker");
  const names = Array.from({ length: 30 }, (_, index) => `cells/${index}`);
  const leases = await Promise.all(names.map((name) => holder.acquire(name)));
  const { changes, stop } = collect(asker, "cells/");
  await eventually("all", () => changes.length >= names.length);
  await cluster.members[0]!.close();
  await leases[0]!.release();
  await eventually("a release without one member", () => changes.some(({ state }) => state === "free"));
  expect(await asker.list("cells/")).toHaveLength(names.length - 1);
  const again = await holder.acquire("cells/0");
  await eventually("the next tenure", () => changes.at(-1)?.token === again.token);
  await cluster.members[1]!.close();
  await eventually("the loss of a member", () => true);
  await sleep(100);
  await expect(asker.list("cells/")).rejects.toMatchObject({ code: "NO_QUORUM" });
  let why = "";
  const known = await asker.list("cells/", { onIncomplete: (text) => (why = text) });
  expect(known.length).toBeGreaterThan(0);
  expect(why).toContain("3 of the 5 members answered; missing: m0, m1");
  const explained = await Promise.all(names.map((name) => asker.explain(name)));
  const lacking = explained.find(({ quorum }) => !quorum);
  expect(lacking?.reasons.join()).toContain("no quorum: 1 of the 3 members that coordinate it can answer");
  expect(lacking?.members.filter(({ state }) => state === "unreachable").map(({ id }) => id)).toEqual([
    "m0",
    "m1",
  ]);
  await expect(asker.break(lacking!.resource)).rejects.toMatchObject({ code: "NO_QUORUM" });
  const tokens = new Map<string, bigint>();
  for (const { resource, token } of changes) {
    expect(token! >= (tokens.get(resource) ?? 0n)).toBe(true);
    tokens.set(resource, token!);
  }
  await stop();
});
