import { describe, expect, test } from "vitest";
import { LeaseholdError } from "../../lease/errors.js";
import { LeaseManager } from "../../lease/manager/lease-manager.js";
import type { World } from "../../common/ports.js";
import { ProcessSwitch } from "../../testing/process-switch.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { encodeRecord } from "../record/codec.js";
import { contentOf, DatumStore } from "./datum-store.js";
import { type GuardedLease, StoredCells } from "./guarded.js";
import { MemoryMedium, MemoryStore } from "../memory/memory-store.js";
import { openFarm } from "../provider/open.js";
import type { DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";
import type { Store } from "../store.js";

const ttlMs = 1_000;

/** A process's access to a store. Its writes, or their answers, can be held back. */
class HeldBack {
  #held: "writes" | "answers" | undefined;
  readonly #waiting: (() => void)[] = [];

  hold(what: "writes" | "answers" = "writes"): void {
    this.#held = what;
  }

  /** Held operations stay held; later ones pass. */
  pass(): void {
    this.#held = undefined;
  }

  letGo(): void {
    this.pass();
    for (const goOn of this.#waiting.splice(0)) goOn();
  }

  to(store: Store): Store {
    const wait = () => new Promise<void>((resolve) => this.#waiting.push(resolve));
    const perform: Store["perform"] = async (request) => {
      const held = request.op === "replace" ? this.#held : undefined;
      if (held === "writes") await wait();
      const answer = await store.perform(request);
      if (held === "answers") await wait();
      return answer;
    };
    return { traits: store.traits, perform, close: () => store.close() };
  }
}

/** One store in virtual time, and processes that use it. */
class Stage {
  readonly world = new VirtualWorld();
  readonly medium: MemoryMedium;
  #opened = 0;

  constructor(bytesMax = 65_536) {
    const { timers, random } = this.world;
    this.medium = new MemoryMedium({ timers, random, name: "store", bytesMax });
    this.medium.latencyMs = { request: 1, answer: 1 };
  }

  async open(process = new ProcessSwitch(), way = new HeldBack()): Promise<StoredCells> {
    const { world } = this;
    const own: World = { clock: world.clock, random: world.random, timers: process.timers(world.timers) };
    const holder = `p${(this.#opened += 1)}`;
    const store = new DatumStore(way.to(new MemoryStore(this.medium, holder)));
    const opening = openFarm([store], own, { holder, leaseMsMax: ttlMs, delayMs: 100 });
    return new StoredCells(new LeaseManager(await this.on(opening), own), store, own.timers);
  }

  /** Advances time until the promise has settled. */
  async on<T>(promise: Promise<T>): Promise<T> {
    const state = { isSettled: false };
    const settled = promise.finally(() => (state.isSettled = true));
    settled.catch(() => undefined);
    while (!state.isSettled) await this.world.advance(1);
    return settled;
  }

  /** The datum in the store. */
  stored(resource: string): string | undefined {
    return contentOf(this.medium.cells(`datum/${resource}`)[0]!).datum;
  }
}

describe("a datum kept with its lease", () => {
  test("is written with one operation, which renews the lease as well", async () => {
    const stage = new Stage();
    const cells = await stage.open();
    const guarded = await stage.on(cells.acquire("r", { autoRenew: false }));
    expect(guarded.datum).toBeUndefined();
    await stage.world.advance(400);
    const before = { ...stage.medium.performed };
    await stage.on(guarded.write("one"));
    expect(stage.medium.performed).toEqual({ ...before, replace: before.replace + 1 });
    expect(guarded.datum).toBe("one");
    expect(stage.stored("r")).toBe("one");
    expect(guarded.lease.remaining()).toBeGreaterThan(ttlMs - 10);
  });

  test("survives renewals, release and the next tenure", async () => {
    const stage = new Stage();
    const [cells, others] = [await stage.open(), await stage.open()];
    const first = await stage.on(cells.acquire("r"));
    await stage.on(first.write("kept"));
    await stage.world.advance(5 * ttlMs);
    expect(first.lease.remaining()).toBeGreaterThan(0);
    expect(await stage.on(others.read("r"))).toEqual({ datum: "kept", token: first.lease.token });
    await stage.on(first.release());
    const second = await stage.on(others.acquire("r"));
    expect(second.datum).toBe("kept");
    expect(second.lease.token).toBeGreaterThan(first.lease.token);
    expect(await stage.on(cells.read("nobody wrote it"))).toEqual({});
  });

  test("that is written while a renewal is in flight goes with the next one", async () => {
    const stage = new Stage();
    const cells = await stage.open();
    const guarded = await stage.on(cells.acquire("r"));
    const renewal = guarded.lease.renew();
    await stage.world.advance(1);
    const writes = Promise.all([guarded.write("one"), guarded.write("two")]);
    await stage.on(writes);
    await renewal;
    expect(stage.stored("r")).toBe("two");
  });

  test("is listed by guarded cells, but not by plain leases on the same store", async () => {
    const stage = new Stage();
    const cells = await stage.open();
    const guarded = await stage.on(cells.acquire("r"));
    await stage.on(guarded.write("x"));
    expect(await stage.on(cells.leases.list())).toMatchObject([{ resource: "r", state: "held" }]);
    const holder = "plain";
    const plain = openFarm([new MemoryStore(stage.medium, holder)], stage.world, { holder, delayMs: 100 });
    const leases = new LeaseManager(await stage.on(plain), stage.world);
    expect(await stage.on(leases.list())).toEqual([]);
  });

  test("that is too long is refused with the numbers, and nothing is lost", async () => {
    const stage = new Stage(5_000);
    const cells = await stage.open();
    const guarded = await stage.on(cells.acquire("r"));
    await stage.on(guarded.write("x".repeat(cells.datumBytesMax - 2)));
    await expect(guarded.write("x".repeat(cells.datumBytesMax - 1))).rejects.toMatchObject({
      code: "STORE_FULL",
      message: `store takes a datum of ${cells.datumBytesMax} bytes, and this one has ${cells.datumBytesMax + 1}`,
    });
    expect(stage.stored("r")).toHaveLength(cells.datumBytesMax - 2);
  });
});

describe("a holder, former or not,", () => {
  test("that was stopped past its expiry finds the lease lost, and writes nothing", async () => {
    const stage = new Stage();
    const process = new ProcessSwitch();
    const [cells, others] = [await stage.open(process), await stage.open()];
    const first = await stage.on(cells.acquire("r"));
    process.pause();
    const second = await stage.on(others.acquire("r"));
    await stage.on(second.write("successor's"));
    process.resume();
    await expect(stage.on(first.write("late"))).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(stage.stored("r")).toBe("successor's");
  });

  test("whose write is still in flight after the take-over is refused by the store", async () => {
    const stage = new Stage();
    const way = new HeldBack();
    const [cells, others] = [await stage.open(undefined, way), await stage.open()];
    const first = await stage.on(cells.acquire("r", { autoRenew: false }));
    await stage.on(first.write("one"));
    way.hold();
    const late = stage.on(first.write("ghost"));
    await expect(late).rejects.toMatchObject({ code: "NO_QUORUM" });
    const second = await stage.on(others.acquire("r"));
    expect(second.datum).toBe("one");
    way.letGo();
    await stage.world.advance(10);
    expect(stage.stored("r")).toBe("one");
    await stage.on(second.write("two"));
    expect(stage.stored("r")).toBe("two");
  });

  test("whose write precedes its successor's is what the successor builds on", async () => {
    const stage = new Stage();
    const way = new HeldBack();
    const [cells, others] = [await stage.open(undefined, way), await stage.open()];
    const first = await stage.on(cells.acquire("r", { autoRenew: false }));
    way.hold();
    await expect(stage.on(first.write("ghost"))).rejects.toMatchObject({ code: "NO_QUORUM" });
    way.letGo();
    const second = await stage.on(others.acquire("r"));
    expect(second.datum).toBe("ghost");
  });

  test("whose answer was lost learns with its next renewal that the datum was written", async () => {
    const stage = new Stage();
    const cells = await stage.open();
    const guarded = await stage.on(cells.acquire("r", { autoRenew: false }));
    stage.medium.stall("answers");
    const written = stage.on(guarded.write("silent"));
    await expect(written).rejects.toMatchObject({ code: "NO_QUORUM" });
    expect(guarded.datum).toBeUndefined();
    stage.medium.resume();
    await stage.on(guarded.lease.renew());
    expect(guarded.datum).toBe("silent");
    await stage.on(guarded.write("next"));
    expect(stage.stored("r")).toBe("next");
  });

  test("whose write was lost in flight does not write it with a later renewal", async () => {
    const stage = new Stage();
    const way = new HeldBack();
    const cells = await stage.open(undefined, way);
    const guarded = await stage.on(cells.acquire("r", { autoRenew: false }));
    await stage.on(guarded.write("one"));
    way.hold();
    await expect(stage.on(guarded.write("lost"))).rejects.toMatchObject({ code: "NO_QUORUM" });
    way.pass();
    await stage.on(guarded.lease.renew());
    expect([guarded.datum, stage.stored("r")]).toEqual(["one", "one"]);
  });

  test("whose answer arrives after the answer to its next write keeps the later one", async () => {
    const stage = new Stage();
    const way = new HeldBack();
    const cells = await stage.open(undefined, way);
    const guarded = await stage.on(cells.acquire("r", { autoRenew: false }));
    way.hold("answers");
    await expect(stage.on(guarded.write("one"))).rejects.toMatchObject({ code: "NO_QUORUM" });
    way.pass();
    await stage.on(guarded.write("two"));
    way.letGo();
    await stage.world.advance(10);
    expect(guarded.datum).toBe("two");
  });

  test("whose write waits beyond its lease does not write in the next tenure of its process", async () => {
    const stage = new Stage();
    const way = new HeldBack();
    const cells = await stage.open(undefined, way);
    const first = await lastMoment(stage, cells);
    way.hold();
    const late = stage.on(first.write("late"));
    late.catch(() => undefined);
    way.pass();
    const second = await stage.on(cells.acquire("r"));
    expect([second.datum, stage.stored("r")]).toEqual(["one", "one"]);
    await expect(late).rejects.toThrow(LeaseholdError);
    await stage.on(second.write("two"));
    expect([first.datum, second.datum]).toEqual(["one", "two"]);
  });
});

/** A lease whose remaining time is shorter than a round trip to the store. */
async function lastMoment(stage: Stage, cells: StoredCells): Promise<GuardedLease> {
  const guarded = await stage.on(cells.acquire("r", { autoRenew: false }));
  await stage.on(guarded.write("one"));
  while (guarded.lease.remaining() > 2) await stage.world.advance(1);
  return guarded;
}

test("a process with thousands of cells loses none of its data", async () => {
  const stage = new Stage();
  const cells = await stage.open();
  const names = Array.from({ length: 1_500 }, (_, index) => `r${index}`);
  const held = await stage.on(Promise.all(names.map((name) => cells.acquire(name, { autoRenew: false }))));
  await stage.on(Promise.all(held.map((guarded) => guarded.write(guarded.lease.resource))));
  await stage.on(Promise.all(held.map(({ lease }) => lease.renew())));
  expect(held.map(({ datum }) => datum)).toEqual(names);
  await stage.on(Promise.all(held.map((guarded) => guarded.release())));
  const again = await stage.on(Promise.all(names.map((name) => cells.acquire(name, { autoRenew: false }))));
  expect(again.map(({ datum }) => datum)).toEqual(names);
});

describe("an unexpected record", () => {
  const record = (writer: string, number: bigint): DeltaRecord => ({
    resource: "r",
    epoch: number,
    number,
    writer,
    nonce: 1,
    state: "held",
    leaseMs: ttlMs,
    delayMs: 100,
  });

  test.each(["was not read", "was read", "was missed"])("that %s is not replaced", async (how) => {
    const stage = new Stage();
    const [mine, others] = ["me", "other"].map(
      (writer) => new DatumStore(new MemoryStore(stage.medium, writer)),
    ) as [DatumStore, DatumStore];
    const register = leaseRegister("r");
    const ask = (store: DatumStore, expected: Uint8Array | undefined, next: DeltaRecord) =>
      stage.on(
        store.perform({ op: "replace", register, id: stage.medium.id, expected, next: encodeRecord(next) }),
      );
    const [first, second] = [record("me", 1n), record("other", 2n)];
    expect((await ask(how === "was overlooked" ? mine : others, undefined, first)).kind).toBe("written");
    await stage.on(others.perform({ op: "read", register }));
    expect((await ask(others, encodeRecord(first), second)).kind).toBe("written");
    if (how === "was read") await stage.on(mine.perform({ op: "read", register }));
    expect((await ask(mine, encodeRecord(first), record("me", 3n))).kind).toBe("conflict");
    expect(contentOf(stage.medium.cells("datum/r")[0]!).record).toMatchObject({ writer: "other" });
  });
});

/**
 * Processes increment a number kept with its lease, under faults: they are stopped, and their operations
 * stall before or after taking effect. A process writes the value it has read plus one, so a write out of
 * order loses or repeats an increment.
 */
async function count(seed: number): Promise<{ history: number[]; acknowledged: number; takeovers: number }> {
  const stage = new Stage();
  const { world, medium } = stage;
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const history: number[] = [];
  let [acknowledged, takeovers] = [0, 0];
  const switches = [new ProcessSwitch(), new ProcessSwitch(), new ProcessSwitch()];
  const all = await Promise.all(switches.map((process) => stage.open(process)));
  const play = { isOver: false };
  const run = async (cells: StoredCells) => {
    while (!play.isOver) {
      try {
        const guarded = await cells.acquire("n", { wait: 500 });
        takeovers += 1;
        for (let writes = 0; writes < 5 && !play.isOver; writes += 1) {
          const next = Number(guarded.datum ?? 0) + 1;
          await guarded.write(String(next));
          acknowledged += 1;
        }
        if (random(8) > 0) await guarded.release();
      } catch (error) {
        if (!(error instanceof LeaseholdError)) throw error;
      }
      await new Promise<void>((resolve) => {
        world.timers.after(1 + random(40), resolve);
      });
    }
  };
  const runs = all.map(run);
  const note = () => {
    const cell = medium.cells("datum/n")[0];
    const value = cell && Number(contentOf(cell).datum ?? 0);
    if (value !== undefined && value !== history.at(-1)) history.push(value);
  };
  for (let step = 0; step < 250; step += 1) {
    const action = random(16);
    const process = switches[random(switches.length)]!;
    if (action === 0) process.pause();
    else if (action === 1) medium.stall(random(2) === 0 ? "requests" : "answers");
    else if (action < 6) for (const each of switches) each.resume();
    else medium.resume();
    for (let ms = random(40); ms >= 0; ms -= 1) {
      await world.advance(1);
      note();
    }
  }
  play.isOver = true;
  medium.resume();
  for (const each of switches) each.resume();
  await stage.on(Promise.all(runs));
  note();
  return { history, acknowledged, takeovers };
}

test("whatever is stopped and stalled, no write is lost, repeated or out of order", async () => {
  let [acknowledged, takeovers] = [0, 0];
  for (let seed = 1; seed <= 6; seed += 1) {
    const { history, ...counts } = await count(seed);
    expect({ seed, history }).toEqual({ seed, history: history.map((_, index) => index) });
    expect(history.length - 1).toBeGreaterThanOrEqual(counts.acknowledged);
    acknowledged += counts.acknowledged;
    takeovers += counts.takeovers;
  }
  expect(acknowledged).toBeGreaterThan(100);
  expect(takeovers).toBeGreaterThan(20);
});
