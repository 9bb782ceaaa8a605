import { expect, test } from "vitest";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { ScriptedProvider } from "../../../../../test/support/scripted-provider.js";
import { LeaseManager } from "./lease-manager.js";
import type { Inspection } from "../provider.js";
import type { Change, ResourceHint } from "../types.js";
import { watchedMax } from "../watch-set.js";
import { Watch } from "./watch.js";

function setUp() {
  const ground = { report: (_hint: ResourceHint): void => undefined, watching: 0, stopped: 0, ended: 0 };
  const watch = new Watch(
    (report) => {
      ground.report = report;
      ground.watching += 1;
      return { stop: () => (ground.stopped += 1) };
    },
    () => (ground.ended += 1),
  );
  return { ground, watch };
}

const held = (resource: string, token: number): ResourceHint => ({
  resource,
  state: "held",
  holder: `h${token}`,
  token: BigInt(token),
});
const free = (resource: string): ResourceHint => ({ resource, state: "free" });

async function read(watch: Watch, count: number): Promise<string[]> {
  const texts: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const { value } = await watch.next();
    texts.push(value === undefined ? "end" : textOf(value));
  }
  return texts;
}

const textOf = ({ resource, state, token }: Change) => `${resource} ${state} ${token}`;

test("nothing is requested before the first read", async () => {
  const { ground, watch } = setUp();
  expect(ground.watching).toBe(0);
  const first = watch.next();
  expect(ground.watching).toBe(1);
  ground.report(held("a", 1));
  expect((await first).value).toEqual({ resource: "a", state: "held", holder: "h1", token: 1n });
});

test("a slow reader gets the newest of each resource", async () => {
  const { ground, watch } = setUp();
  const first = watch.next();
  ground.report(held("a", 1));
  await first;
  for (let token = 2; token < 1_000; token += 1) {
    ground.report(free("a"));
    ground.report(held("a", token));
  }
  ground.report(held("b", 5));
  ground.report(free("b"));
  expect(await read(watch, 2)).toEqual(["a held 999", "b free 5"]);
});

test("tokens never go back, and nothing is reported twice", async () => {
  const { ground, watch } = setUp();
  const all = read(watch, 4);
  ground.report(free("a"));
  ground.report(held("a", 5));
  await Promise.resolve();
  ground.report(held("a", 5));
  ground.report(held("a", 4));
  ground.report(free("a"));
  await Promise.resolve();
  ground.report(free("a"));
  ground.report(held("a", 4));
  ground.report(held("a", 5));
  await Promise.resolve();
  ground.report(held("a", 6));
  expect(await all).toEqual(["a held 5", "a free 5", "a held 5", "a held 6"]);
});

test("a watch that is ended ends for its readers, and stops the ground's watch", async () => {
  const { ground, watch } = setUp();
  const reading = read(watch, 2);
  watch.end();
  expect(await reading).toEqual(["end", "end"]);
  ground.report(held("a", 1));
  expect(await read(watch, 1)).toEqual(["end"]);
  expect(ground).toMatchObject({ watching: 1, stopped: 1, ended: 1 });
});

test("a watch forgets resources that are free, and fails with WATCH_TOO_WIDE when too many are held", async () => {
  const { ground, watch } = setUp();
  const first = watch.next();
  for (let number = 0; number < 1_000; number += 1) {
    ground.report(held(`old${number}`, 1));
    ground.report(free(`old${number}`));
  }
  await first;
  for (let number = 0; number < watchedMax; number += 1) ground.report(held(`r${number}`, 1));
  expect((await watch.next()).done).toBe(false);
  ground.report(held("one too many", 1));
  await expect(watch.next()).rejects.toMatchObject({ code: "WATCH_TOO_WIDE" });
  expect((await watch.next()).done).toBe(true);
  expect(ground).toMatchObject({ stopped: 1, ended: 1 });
});

function manager(inspection?: Partial<Inspection>) {
  const world = new VirtualWorld();
  const provider = Object.assign(new ScriptedProvider(world.clock), {
    inspection: inspection as Inspection | undefined,
  });
  return { leases: new LeaseManager(provider, world), provider };
}

test("a watch ends by its signal, by leaving the loop and by close", async () => {
  let stopped = 0;
  const { leases } = manager({
    watch: (_prefix, report) => {
      void Promise.resolve().then(() => report(held("a", 1)));
      return { stop: () => (stopped += 1) };
    },
  });
  const controller = new AbortController();
  const { signal } = controller;
  const seen: string[] = [];
  for await (const change of leases.watch("", { signal })) {
    seen.push(textOf(change));
    controller.abort();
  }
  for await (const change of leases.watch("")) {
    seen.push(textOf(change));
    break;
  }
  expect([...seen, stopped]).toEqual(["a held 1", "a held 1", 2]);
  expect((await leases.watch("", { signal }).next()).done).toBe(true);
  const last = leases.watch("");
  await last.next();
  await leases.close();
  expect((await last.next()).done).toBe(true);
  expect(stopped).toBe(3);
  expect(() => leases.watch("")).toThrow("closed");
});

test("a seventeenth watch is refused, and every watch on a ground without watches", async () => {
  const { leases } = manager({ watch: () => ({ stop: () => undefined }) });
  const watches = Array.from({ length: 16 }, () => leases.watch(""));
  expect(() => leases.watch("")).toThrow("16 open watches");
  await watches[0]!.return?.();
  expect(() => leases.watch("")).not.toThrow();
  const without = manager();
  expect(() => without.leases.watch("")).toThrow("don't support the call");
  await expect(without.leases.explain("a")).rejects.toMatchObject({ code: "UNSUPPORTED" });
});

test("a holder is asked to release once, and remains the holder", async () => {
  const { leases, provider } = manager();
  const acquiring = leases.acquire("a");
  provider.attempts[0]!.grant();
  const lease = await acquiring;
  provider.events?.releaseRequested?.({ resource: "b", by: "x", broken: false });
  expect(lease.releaseRequested.aborted).toBe(false);
  provider.events?.releaseRequested?.({ resource: "a", by: "x", broken: false });
  provider.events?.releaseRequested?.({ resource: "a", by: "y", broken: true });
  expect(lease.releaseRequested.reason).toMatchObject({
    code: "RELEASE_REQUESTED",
    message: 'x asks for "a"',
  });
  expect(lease.remaining()).toBeGreaterThan(0);
  await lease.release();
});
