import { describe, expect, test } from "vitest";
import { LeaseholdError } from "../../lease/errors.js";
import type { Grant } from "../../lease/provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { decodeFarmCell, mergeFarmCells } from "./farm-cell.js";
import { MemoryMedium, MemoryStore } from "../memory/memory-store.js";
import { openFarm } from "../provider/open.js";
import type { DeltaProvider } from "../provider/provider.js";
import { farmRegister, type StoreAnswer, type StoreRequest } from "../store.js";

const delayMs = 50;
const leaseMsMax = 1_000;

/** One process's access to a store, which it may lose while others keep theirs. */
class Way extends MemoryStore {
  /** The lost requests: `farm` those for the farm's register, `writes` those that would change it. */
  cut: "nothing" | "farm" | "writes" | "everything" = "nothing";
  /** The latency of writes, ms. */
  lateMs = 0;
  readonly #timers;

  constructor(medium: MemoryMedium, writer: string, timers: VirtualWorld["timers"]) {
    super(medium, writer);
    this.#timers = timers;
  }

  override async perform(request: StoreRequest): Promise<StoreAnswer> {
    if (this.lateMs > 0 && request.op !== "read")
      await new Promise<void>((resolve) => void this.#timers.after(this.lateMs, resolve));
    const isFarm = "register" in request && request.register === farmRegister;
    const isCut = this.cut === "farm" || (this.cut === "writes" && request.op !== "read");
    if (this.cut === "everything" || (isFarm && isCut))
      return { kind: "failed", error: new LeaseholdError("STORE_UNAVAILABLE", "cut off") };
    return super.perform(request);
  }
}

/** A program with its own list of stores. */
interface Program {
  readonly ways: readonly Way[];
  readonly provider: Promise<DeltaProvider>;
}

class Stage {
  readonly world = new VirtualWorld();
  readonly media: readonly MemoryMedium[];

  constructor(kind: "atomic" | "slotted" = "atomic") {
    const { timers, random } = this.world;
    this.media = Array.from(
      { length: 5 },
      (_, index) => new MemoryMedium({ timers, random, name: `store-${index}`, delayMs, kind }),
    );
  }

  open(
    name: string,
    list: readonly number[],
    prepare: (ways: readonly Way[]) => void = () => undefined,
  ): Program {
    const ways = list.map((index) => new Way(this.media[index]!, name, this.world.timers));
    prepare(ways);
    const provider = openFarm(ways, this.world, { holder: `${name}.1`, leaseMsMax });
    provider.catch(() => undefined);
    return { ways, provider };
  }

  async wait<T>(promise: Promise<T>): Promise<T> {
    const seen = { isSettled: false };
    const settle = () => void (seen.isSettled = true);
    promise.then(settle, settle);
    await this.world.settle();
    while (!seen.isSettled) await this.world.advance(1);
    return promise;
  }

  cell(store: number) {
    return mergeFarmCells(this.media[store]!.cells(farmRegister).map(decodeFarmCell));
  }
}

async function attempt(provider: DeltaProvider): Promise<Grant | undefined> {
  const request = { resource: "r", ttlMs: leaseMsMax, timeoutMs: 200, contended: false, waiting: true };
  const outcome = await provider.attempt(request);
  return outcome.kind === "granted" ? outcome.grant : undefined;
}

/** Acquires the resource, and renews it while it can. */
function campaign(provider: DeltaProvider, world: VirtualWorld) {
  const state = { grant: undefined as Grant | undefined, tenures: 0, isOver: false };
  const run = async () => {
    while (!state.isOver) {
      state.grant = await attempt(provider);
      if (state.grant !== undefined) state.tenures += 1;
      while (!state.isOver && (state.grant?.remainingMs() ?? 0) > 0) {
        await provider.renew(state.grant!, leaseMsMax);
        await new Promise<void>((resolve) => void world.timers.after(leaseMsMax / 10, resolve));
      }
      await new Promise<void>((resolve) => void world.timers.after(10, resolve));
    }
  };
  return { state, done: run() };
}

describe("two programs, one of which has replaced the first store", () => {
  test.each([
    ["atomic", "that learns of the new list", "nothing"],
    ["atomic", "that learns nothing", "farm"],
    ["slotted", "that learns of the new list", "nothing"],
    ["slotted", "that learns nothing", "farm"],
  ] as const)("on %s stores: one %s never holds when the other does", async (kind, _, cut) => {
    const stage = new Stage(kind);
    const old = stage.open("old", [0, 1, 2]);
    const { state: first, done } = campaign(await stage.wait(old.provider), stage.world);
    // Majorities that do not overlap: {0, 1} for the old list, and {2, 3} for the new one as soon as it may
    // exist.
    old.ways[2]!.cut = "everything";
    await stage.world.advance(3 * leaseMsMax);
    expect(first.grant?.remainingMs()).toBeGreaterThan(0);
    const token = first.grant!.token;
    for (const way of old.ways.slice(0, 2)) way.cut = cut;
    const renewed = stage.open("new", [1, 2, 3]);
    const second = campaign(await stage.wait(renewed.provider), stage.world);
    await stage.world.advance(10);
    expect([1, 2].map((store) => stage.cell(store)?.generation)).toEqual([1, 1]);
    renewed.ways[0]!.cut = "everything";
    for (let passedMs = 0; passedMs < 8 * leaseMsMax; passedMs += 5) {
      await stage.world.advance(5);
      const held = [first, second.state].filter(({ grant }) => (grant?.remainingMs() ?? 0) > 0);
      expect({ passedMs, held: held.length }).not.toMatchObject({ held: 2 });
    }
    expect(second.state.grant?.remainingMs()).toBeGreaterThan(0);
    expect(second.state.grant!.token).toBeGreaterThan(token);
    expect(first.tenures).toBe(1);
    first.isOver = second.state.isOver = true;
    await stage.world.advance(leaseMsMax);
    await Promise.all([done, second.done]);
  });

  test("a store that was replaced does not count again for a program that then sees it alone", async () => {
    const stage = new Stage();
    const old = stage.open("old", [0, 1, 2]);
    const first = await stage.wait(old.provider);
    await stage.world.advance(leaseMsMax);
    const renewed = stage.open("new", [1, 2, 3]);
    const second = await stage.wait(renewed.provider);
    for (let passedMs = 0; passedMs < 8 * leaseMsMax; passedMs += 100) {
      await stage.world.advance(100);
      await Promise.all([stage.wait(first.query("r", 100)), stage.wait(second.query("r", 100))]);
    }
    expect(stage.cell(3)?.state).toBe("ready");
    // Majorities that do not overlap: {0, 1} for the old list, and {2, 3} for the new one. The old program
    // has just learned of the new list, and now sees nothing of the farm but its former store.
    old.ways[1]!.cut = "farm";
    old.ways[2]!.cut = "everything";
    renewed.ways[0]!.cut = "everything";
    const { state: one, done } = campaign(first, stage.world);
    const { state: other, done: otherDone } = campaign(second, stage.world);
    for (let passedMs = 0; passedMs < 4 * leaseMsMax; passedMs += 5) {
      await stage.world.advance(5);
      const held = [one, other].filter(({ grant }) => (grant?.remainingMs() ?? 0) > 0);
      expect({ passedMs, held: held.length }).not.toMatchObject({ held: 2 });
    }
    one.isOver = other.isOver = true;
    await stage.world.advance(leaseMsMax);
    await Promise.all([done, otherDone]);
  });

  test("the old one continues with the shared stores, and reports the fault of the others", async () => {
    const stage = new Stage();
    const old = await stage.wait(stage.open("old", [0, 1, 2]).provider);
    await stage.wait(stage.open("new", [1, 2, 3]).provider);
    await stage.world.advance(leaseMsMax);
    const grant = await stage.wait(attempt(old));
    expect(grant?.remainingMs()).toBeGreaterThan(0);
    const { members } = await stage.wait(old.inspection.explain("r", 100));
    expect(members.map(({ state }) => state)).toEqual(["unreachable", "ready", "ready"]);
    expect(members[0]!.reason).toMatch(/^another store has taken its place/);
    expect(stage.cell(0)).toMatchObject({ generation: 0 });
    const again = await stage.wait(stage.open("old again", [0, 1, 2]).provider);
    expect(await stage.wait(attempt(again))).toBeUndefined();
    expect(stage.cell(1)).toMatchObject({ generation: 1 });
  });

  test("the newcomer is not written, and does not count, until a majority of the others knows of it", async () => {
    const stage = new Stage();
    await stage.wait(stage.open("old", [0, 1, 2]).provider);
    const cut = (ways: readonly Way[]) => void (ways[1]!.cut = "writes");
    const half = await stage.wait(stage.open("half", [1, 2, 3], cut).provider);
    for (let passedMs = 0; passedMs < 5 * leaseMsMax; passedMs += 100) {
      await stage.world.advance(100);
      await stage.wait(half.query("r", 100));
    }
    expect([1, 2, 3].map((store) => stage.cell(store)?.generation)).toEqual([1, 0, undefined]);
    expect(await stage.wait(attempt(half))).toBeUndefined();
  });
});

test("two lists that are used for the first time at once do not both become farms", async () => {
  const stage = new Stage();
  // Each of the two shared stores gets a different list first, and then the other one.
  const late = (index: number) => (ways: readonly Way[]) => void (ways[index]!.lateMs = 10);
  const programs = [stage.open("a", [0, 1, 2], late(1)), stage.open("b", [1, 2, 3], late(1))];
  await stage.world.advance(5);
  programs[0]!.ways[1]!.cut = programs[1]!.ways[1]!.cut = "everything";
  const grants: unknown[] = [];
  for (const { provider } of programs) {
    const opened = await stage.wait(provider.catch(() => undefined));
    if (opened !== undefined) grants.push(await stage.wait(attempt(opened)));
  }
  expect(grants.filter((grant) => grant !== undefined).length).toBeLessThan(2);
});
