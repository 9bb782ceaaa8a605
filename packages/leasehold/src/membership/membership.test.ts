import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { duringFaults, type Fault } from "../../../../test/planted/switches.js";
import {
  MemoryCore,
  memoryCoreClient,
  openMemoryCore,
  virtualCoreGround,
} from "../../../../test/support/memory-core.js";
import { virtualFarmGround } from "../../../../test/support/memory-farm.js";
import { virtualGridGround } from "../../../../test/support/memory-grid.js";
import { groundOfProcesses, virtualGround } from "../../../../test/support/virtual-ground.js";
import { joinGroup } from "../entry/membership.js";
import type { ConformanceGround } from "../testing/conformance.js";
import { CoreRegistry } from "../etcd/core-registry.js";
import type { World } from "../common/ports.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import { groupSettings, join } from "./join.js";
import { MemoryProvider } from "../testing/memory-provider.js";
import type { Group, GroupOptions, MemberChange } from "./types.js";

const memory = () =>
  virtualGround(
    ({ ground, world, name, process }) =>
      new MemoryProvider(ground, world, { name, ttlMaxMs: 2_000, process }),
  );

/** A ground, and how to join a group there if groups are not leases. */
interface GroupGround extends ConformanceGround {
  join?(who: string, options: GroupOptions): Promise<Group>;
}

/** Like `joinCoreGroup`, but on a core in memory. */
function plainKeys(): GroupGround {
  const world = new VirtualWorld();
  const core = new MemoryCore(world);
  const worlds = new Map<string, World>();
  const ground = groundOfProcesses(world, (name, own) => {
    worlds.set(name, own);
    return openMemoryCore(core, name, own);
  });
  return {
    ...ground,
    join: (who, options) => {
      const own = worlds.get(who)!;
      const settings = groupSettings("g", options);
      const parts = { prefix: "members/g/", ttlSeconds: 2, jitterMs: settings.jitterMs, world: own };
      const registry = new CoreRegistry({ ...parts, ...memoryCoreClient(core, own) });
      return join("g", registry, own, settings, options);
    },
  };
}

const grounds: Record<string, () => GroupGround> = {
  memory,
  "plain keys of a core": plainKeys,
  core: () => virtualCoreGround(),
  "stores that compare and set": () => virtualFarmGround({ kinds: ["atomic", "atomic"] }),
  grid: () => virtualGridGround(),
};

/** Advances time until the promise settles. */
async function until<T>(ground: ConformanceGround, promise: Promise<T>): Promise<T> {
  const seen = { isSettled: false };
  const settle = () => void (seen.isSettled = true);
  promise.then(settle, settle);
  await Promise.resolve();
  for (let passedMs = 0; !seen.isSettled && passedMs < 200_000; passedMs += 50) await ground.pass(50);
  return promise;
}

async function stage(ground: GroupGround) {
  const joinAs = async (who: string, options: GroupOptions = {}) => {
    const leases = await until(ground, ground.open(who));
    const all = { ttl: 2_000, ...options };
    const joining = ground.join?.(who, all) ?? joinGroup(leases, "g", all);
    return { leases, group: await until(ground, joining) };
  };
  return joinAs;
}

/** Collects all further changes. */
function follow(group: Group): string[] {
  const changes: string[] = [];
  const write = ({ type, member: { name } }: MemberChange) => void changes.push(`${name} ${type}`);
  void (async () => {
    for await (const change of group.changes()) write(change);
    changes.push("end");
  })().catch((error: unknown) => changes.push(String(error)));
  return changes;
}

const names = (group: Group) => group.members.map(({ name }) => name).join();

/**
 * Starts and stops one member three times, with pauses below the grace period. Returns the members after each
 * start and stop, and all reported changes.
 */
async function flapping(open: () => GroupGround): Promise<string[]> {
  const ground = open();
  const joinAs = await stage(ground);
  const { group: calm } = await joinAs("calm", { grace: "8s" });
  const changes = follow(calm);
  const seen: string[] = [];
  const look = () => {
    for (const { name, isMissing } of calm.members) seen.push(isMissing ? `${name} missing` : name);
  };
  for (let life = 0; life < 3; life += 1) {
    const { group } = await joinAs(`alice${life}`, { name: "a" });
    await ground.pass(3_000);
    look();
    await until(ground, group.leave());
    await ground.pass(3_000);
    look();
  }
  await ground.pass(10_000);
  look();
  await ground.close();
  return [...seen, ...changes.filter((each) => each !== "end")];
}

describe.each(Object.entries(grounds))("a group on %s", (_name, open) => {
  test("reports the members, and at once who joins and who leaves", async () => {
    const ground = open();
    const joinAs = await stage(ground);
    const { group: watcher } = await joinAs("watcher");
    const changes = follow(watcher);
    const { group: a } = await joinAs("alice", { name: "a", data: { port: 1 } });
    expect(a.isIn).toBe(true);
    const { group: b } = await joinAs("bob", { name: "b" });
    await ground.pass(4_000);
    expect([names(watcher), names(a), names(b), watcher.isIn]).toEqual(["a,b", "a,b", "a,b", false]);
    expect(b.members[0]).toMatchObject({ data: { port: 1 }, isMissing: false });
    await until(ground, a.leave());
    await ground.pass(4_000);
    expect([names(watcher), names(a), names(b)]).toEqual(["b", "", "b"]);
    expect(changes).toEqual(["a joined", "b joined", "a left"]);
    await until(ground, Promise.all([watcher.leave(), b.leave()]));
    expect(changes.at(-1)).toBe("end");
    await ground.close();
  });

  test("reports a stopped member within its ttl and the ground's delay, and its return", async () => {
    const ground = open();
    const joinAs = await stage(ground);
    const { group: watcher, leases } = await joinAs("watcher");
    const { leases: stopped, group } = await joinAs("alice", { name: "a" });
    await ground.pass(4_000);
    const changes = follow(watcher);
    await ground.freeze!(stopped, leases.guarantees.takeoverMsMax + 1_000);
    expect(changes).toEqual(["a joined", "a left"]);
    await ground.pass(10_000);
    expect([changes.at(-1), names(watcher), group.isIn]).toEqual(["a joined", "a", true]);
    await ground.close();
  });

  test("does not flap within its grace", async () => {
    expect(await flapping(open)).toEqual([
      "a",
      "a missing",
      "a",
      "a missing",
      "a",
      "a missing",
      "a joined",
      "a left",
    ]);
  });
});

describe("a group", () => {
  test("has one member of a name: the second waits, until its TIMEOUT or until the first has gone", async () => {
    const ground = memory();
    const joinAs = await stage(ground);
    const { group: first } = await joinAs("alice", { name: "a" });
    await expect(joinAs("bob", { name: "a", wait: "1s" })).rejects.toMatchObject({ code: "TIMEOUT" });
    const second = joinAs("carol", { name: "a" });
    await ground.pass(500);
    await first.leave();
    expect((await second).group.isIn).toBe(true);
    await ground.close();
  });

  test("ends with its signal, with the participant, and by leave; a failed join leaves nothing behind", async () => {
    const ground = memory();
    const joinAs = await stage(ground);
    const stop = new AbortController();
    const { group, leases } = await joinAs("alice", { name: "a", signal: stop.signal });
    const changes = follow(group);
    await ground.pass(10);
    const waiting = joinAs("bob", { name: "a", signal: stop.signal });
    await ground.pass(10);
    const reason = new Error("enough");
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await ground.pass(10);
    expect([group.isIn, changes]).toEqual([false, ["a joined", "end"]]);
    expect(await leases.list("g/")).toEqual([]);
    const { group: last, leases: closing } = await joinAs("carol", { name: "c" });
    const heard = follow(last);
    await ground.pass(10);
    await until(ground, closing.close());
    await ground.pass(10);
    expect([last.isIn, names(last), heard]).toEqual([false, "", ["c joined", "end"]]);
    await expect(joinGroup(closing, "g", { name: "d" })).rejects.toMatchObject({ code: "CLOSED" });
    await ground.close();
  });

  test("reports to a slow reader each member's difference to its last reported state, and nothing in between", async () => {
    const ground = memory();
    const joinAs = await stage(ground);
    const { group: watcher } = await joinAs("watcher");
    const changes = watcher.changes();
    const { group: a } = await joinAs("alice", { name: "a", data: 1 });
    await ground.pass(10);
    expect((await changes.next()).value).toMatchObject({ type: "joined", member: { name: "a", data: 1 } });
    const { group: b } = await joinAs("bob", { name: "b" });
    await ground.pass(10);
    await b.leave();
    await a.leave();
    await joinAs("alice2", { name: "a", data: 2 });
    await ground.pass(10);
    expect((await changes.next()).value).toMatchObject({ type: "changed", member: { name: "a", data: 2 } });
    const next = changes.next();
    await ground.close();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  test("leaves no listener on its caller's signal when it was left", async () => {
    const ground = memory();
    const joinAs = await stage(ground);
    const { signal } = new AbortController();
    const { group } = await joinAs("alice", { name: "a", signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    await until(ground, group.leave());
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    await ground.close();
  });

  test("does not count the slots of a counted lease with the group's name as members", async () => {
    const ground = memory();
    const joinAs = await stage(ground);
    const { group, leases } = await joinAs("alice", { name: "a" });
    const changes = follow(group);
    for (let slot = 0; slot < 3; slot += 1) await leases.acquire("g", { limit: 3 });
    await ground.pass(10);
    expect([names(group), changes]).toEqual(["a", ["a joined"]]);
    await ground.close();
  });

  test("refuses a mere watcher, too, where nothing can be watched", async () => {
    const ground = memory();
    const joinAs = await stage(ground);
    const { leases } = await joinAs("alice");
    for (let count = 1; count < 16; count += 1) await joinGroup(leases, "g");
    await expect(joinGroup(leases, "g")).rejects.toMatchObject({ code: "TOO_MANY_WAITERS" });
    await until(ground, leases.close());
    await expect(joinGroup(leases, "g")).rejects.toMatchObject({ code: "CLOSED" });
    await ground.close();
  });

  test("refuses invalid names and options, and more than 16 readers", async () => {
    const ground = memory();
    const joinAs = await stage(ground);
    const { leases, group } = await joinAs("alice");
    const refused = (name: string, options: object) =>
      joinGroup(leases, name, options).then(
        () => "joined",
        (error: { code: string }) => error.code,
      );
    expect(await refused("g", { name: "a/b" })).toBe("INVALID_NAME");
    expect(await refused("", { name: "a" })).toBe("INVALID_NAME");
    expect(await refused("g", { name: "~1" })).toBe("INVALID_NAME");
    expect(await refused("g", { nmae: "a" })).toBe("INVALID_CONFIG");
    expect(await refused("g", { grace: "soon" })).toBe("INVALID_DURATION");
    for (let count = 0; count < 16; count += 1) group.changes();
    expect(() => group.changes()).toThrow(expect.objectContaining({ code: "TOO_MANY_WAITERS" }));
    await ground.close();
  });
});

describe("a view with the mistake", () => {
  test.each<Fault>(["graceOfAnEarlierLifeRuns", "graceIsForgotten"])("%s flaps", async (fault) => {
    const changes = await duringFaults({ [fault]: true }, () => flapping(memory));
    expect(changes.filter((each) => each === "a left").length).toBeGreaterThan(1);
  });
});
