import { describe, expect, test } from "vitest";
import { duringFaults, type Fault } from "../../test/planted/switches.js";
import { virtualCoreGround } from "../../test/support/memory-core.js";
import { virtualFarmGround } from "../../test/support/memory-farm.js";
import { virtualGridGround } from "../../test/support/memory-grid.js";
import { virtualGround } from "../../test/support/virtual-ground.js";
import { joinGroup } from "../entry/membership.js";
import type { ConformanceGround } from "../testing/conformance.js";
import { MemoryProvider } from "../testing/memory-provider.js";
import type { Group, GroupOptions, MemberChange } from "./types.js";

const memory = () =>
  virtualGround(
    ({ ground, world, name, process }) =>
      new MemoryProvider(ground, world, { name, ttlMaxMs: 2_000, process }),
  );

const grounds: Record<string, () => ConformanceGround> = {
  memory,
  core: () => virtualCoreGround(),
  "stores that compare and set": () => virtualFarmGround({ kinds: ["atomic", "atomic"] }),
  grid: () => virtualGridGround(),
};

/** Time passes until the promise settles. */
async function until<T>(ground: ConformanceGround, promise: Promise<T>): Promise<T> {
  const seen = { isSettled: false };
  const settle = () => void (seen.isSettled = true);
  promise.then(settle, settle);
  await Promise.resolve();
  for (let passedMs = 0; !seen.isSettled && passedMs < 200_000; passedMs += 50) await ground.pass(50);
  return promise;
}

async function stage(ground: ConformanceGround) {
  const join = async (who: string, options: GroupOptions = {}) => {
    const leases = await until(ground, ground.open(who));
    return { leases, group: await until(ground, joinGroup(leases, "g", { ttl: 2_000, ...options })) };
  };
  return join;
}

/** Collects what is told from now on. */
function follow(group: Group): string[] {
  const told: string[] = [];
  const write = ({ type, member: { name } }: MemberChange) => void told.push(`${name} ${type}`);
  void (async () => {
    for await (const change of group.changes()) write(change);
    told.push("end");
  })().catch((error: unknown) => told.push(String(error)));
  return told;
}

const names = (group: Group) => group.members.map(({ name }) => name).join();

/** Three lives of one member with pauses below the grace: who is in after each, and what was told in all. */
async function flapping(open: () => ConformanceGround): Promise<string[]> {
  const ground = open();
  const join = await stage(ground);
  const { group: calm } = await join("calm", { grace: "8s" });
  const told = follow(calm);
  const seen: string[] = [];
  const look = () => {
    for (const { name, isMissing } of calm.members) seen.push(isMissing ? `${name} missing` : name);
  };
  for (let life = 0; life < 3; life += 1) {
    const { group } = await join(`alice${life}`, { name: "a" });
    await ground.pass(3_000);
    look();
    await until(ground, group.leave());
    await ground.pass(3_000);
    look();
  }
  await ground.pass(10_000);
  look();
  await ground.close();
  return [...seen, ...told.filter((each) => each !== "end")];
}

describe.each(Object.entries(grounds))("a group on %s", (_name, open) => {
  test("tells who is in, who comes, and who leaves at once", async () => {
    const ground = open();
    const join = await stage(ground);
    const { group: watcher } = await join("watcher");
    const told = follow(watcher);
    const { group: a } = await join("alice", { name: "a", data: { port: 1 } });
    expect(a.isIn).toBe(true);
    const { group: b } = await join("bob", { name: "b" });
    await ground.pass(4_000);
    expect([names(watcher), names(a), names(b), watcher.isIn]).toEqual(["a,b", "a,b", "a,b", false]);
    expect(b.members[0]).toMatchObject({ data: { port: 1 }, isMissing: false });
    await until(ground, a.leave());
    await ground.pass(4_000);
    expect([names(watcher), names(a), names(b)]).toEqual(["b", "", "b"]);
    expect(told).toEqual(["a joined", "b joined", "a left"]);
    await ground.close();
    expect(told.at(-1)).toBe("end");
  });

  test("tells of one that has stopped within its ttl and what the ground needs, and it comes back", async () => {
    const ground = open();
    const join = await stage(ground);
    const { group: watcher, leases } = await join("watcher");
    const { leases: stopped, group } = await join("alice", { name: "a" });
    await ground.pass(4_000);
    const told = follow(watcher);
    await ground.freeze!(stopped, leases.guarantees.takeoverMsMax + 1_000);
    expect(told).toEqual(["a joined", "a left"]);
    await ground.pass(10_000);
    expect([told.at(-1), names(watcher), group.isIn]).toEqual(["a joined", "a", true]);
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
    const join = await stage(ground);
    const { group: first } = await join("alice", { name: "a" });
    await expect(join("bob", { name: "a", wait: "1s" })).rejects.toMatchObject({ code: "TIMEOUT" });
    const second = join("carol", { name: "a" });
    await ground.pass(500);
    await first.leave();
    expect((await second).group.isIn).toBe(true);
    await ground.close();
  });

  test("ends with its signal, with the participant, and by leave; what was not joined leaves nothing", async () => {
    const ground = memory();
    const join = await stage(ground);
    const stop = new AbortController();
    const { group, leases } = await join("alice", { name: "a", signal: stop.signal });
    const told = follow(group);
    await ground.pass(10);
    const waiting = join("bob", { name: "a", signal: stop.signal });
    await ground.pass(10);
    const reason = new Error("enough");
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await ground.pass(10);
    expect([group.isIn, told]).toEqual([false, ["a joined", "end"]]);
    expect(await leases.list("g/")).toEqual([]);
    const { group: last, leases: closing } = await join("carol", { name: "c" });
    const heard = follow(last);
    await ground.pass(10);
    await until(ground, closing.close());
    await ground.pass(10);
    expect([last.isIn, names(last), heard]).toEqual([false, "", ["c joined", "end"]]);
    await expect(joinGroup(closing, "g", { name: "d" })).rejects.toMatchObject({ code: "CLOSED" });
    await ground.close();
  });

  test("tells a slow reader how each member differs from what it was told, and nothing in between", async () => {
    const ground = memory();
    const join = await stage(ground);
    const { group: watcher } = await join("watcher");
    const changes = watcher.changes();
    const { group: a } = await join("alice", { name: "a", data: 1 });
    await ground.pass(10);
    expect((await changes.next()).value).toMatchObject({ type: "joined", member: { name: "a", data: 1 } });
    const { group: b } = await join("bob", { name: "b" });
    await ground.pass(10);
    await b.leave();
    await a.leave();
    await join("alice2", { name: "a", data: 2 });
    await ground.pass(10);
    expect((await changes.next()).value).toMatchObject({ type: "changed", member: { name: "a", data: 2 } });
    const next = changes.next();
    await ground.close();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  test("refuses what it has no name or option for, and more than 16 readers", async () => {
    const ground = memory();
    const join = await stage(ground);
    const { leases, group } = await join("alice");
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
    const told = await duringFaults({ [fault]: true }, () => flapping(memory));
    expect(told.filter((each) => each === "a left").length).toBeGreaterThan(1);
  });
});
