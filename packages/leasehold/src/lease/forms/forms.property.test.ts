import { describe, expect, test } from "vitest";
import { effort } from "../../../../../test/support/effort.js";
import { MemoryCore, openMemoryCore } from "../../../../../test/support/memory-core.js";
import { MemoryFarm } from "../../../../../test/support/memory-farm.js";
import { MemoryGrid, gridOptions } from "../../../../../test/support/memory-grid.js";
import { seedOf } from "../../../../../test/support/seed.js";
import type { World } from "../../common/ports.js";
import { Xorshift } from "../../common/xorshift.js";
import type { MemoryMedium } from "../../delta/memory/memory-store.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseholdError } from "../errors.js";
import { LeaseManager } from "../manager/lease-manager.js";
import { leasesOfSetMax } from "../manager/lease-set.js";
import type { Provider } from "../provider.js";
import { limitMax } from "../slots.js";
import type { Lease, Leases, LeaseSet } from "../types.js";
import { readersMax } from "./shared.js";

/**
 * All forms at once on each ground in virtual time: participants abort calls, messages are lost, and system
 * clocks step. The oracle knows until when, on the steady clock, each program was promised its lease. Until
 * then, or until the release, nobody else may hold a lease that conflicts with it. At the end nothing is left
 * behind.
 */

interface Ground {
  readonly ttlMs: number;
  /** How far system clocks may differ. Absent: arbitrarily far. */
  readonly apartMs?: number;
  open(name: string, world: World): Promise<Provider>;
  /** Loses messages from now on. */
  disturb(): void;
  heal(): void;
}

type MakeGround = (world: VirtualWorld, random: Xorshift) => Ground;

function onMedia(media: readonly MemoryMedium[], random: Xorshift) {
  return {
    disturb: () => {
      // From time to time a majority doesn't answer.
      for (const medium of media)
        if (random.next() < 0.4) medium.stall(random.next() < 0.5 ? "requests" : "answers");
    },
    heal: () => {
      for (const medium of media) medium.resume();
    },
  };
}

const slowly = (media: readonly MemoryMedium[]) => {
  for (const medium of media) medium.latencyMs = { request: 3, answer: 3 };
};

const grounds: Record<string, MakeGround> = {
  delta: (world, random) => {
    const farm = new MemoryFarm(world, 3, { delayMs: 50 });
    const open = async (name: string, own: World) => {
      const provider = await farm.open(name, own, { leaseMsMax: 1_000 });
      slowly(farm.media);
      return provider;
    };
    return { ttlMs: 1_000, open, ...onMedia(farm.media, random) };
  },
  flease: (world, random) => {
    const grid = new MemoryGrid(world);
    const open = async (name: string, own: World) => {
      const provider = await grid.provide(name, {}, own);
      slowly(grid.media);
      return provider;
    };
    const apartMs = gridOptions.maxClockSkewMs;
    return { ttlMs: 1_000, apartMs, open, ...onMedia(grid.media, random) };
  },
  core: (world, random) => {
    const core = new MemoryCore(world);
    const open = async (name: string, own: World) => openMemoryCore(core, name, own);
    const fates = ["answered", "answered", "repeated", "request lost", "answer lost"] as const;
    return {
      ttlMs: 2_000,
      open,
      disturb: () => (core.fate = () => fates[Math.floor(random.next() * fates.length)]!),
      heal: () => (core.fate = () => "answered"),
    };
  },
};

const limit = 3;
const names = { plain: ["a", "b"], pool: "pool", shared: "s/~rw" };

interface Holding {
  readonly name: string;
  readonly who: string;
  readonly form: "exclusive" | "counted" | "reader" | "writer";
  readonly slot: number;
  /** The end of the time for which the program may rely on the lease, on the steady clock. */
  untilMs: number;
}

/** Records what programs were promised. */
class Oracle {
  readonly violations: string[] = [];
  readonly held: Record<Holding["form"], number> = { exclusive: 0, counted: 0, reader: 0, writer: 0 };
  readonly #world: VirtualWorld;
  readonly #holdings = new Set<Holding>();

  constructor(world: VirtualWorld) {
    this.#world = world;
  }

  begin(holding: Omit<Holding, "untilMs">, remainingMs: number): Holding {
    const nowMs = this.#world.clock.monotonicMs();
    const begun = { ...holding, untilMs: nowMs + remainingMs };
    const beside = [...this.#holdings].filter(
      (other) => other.untilMs > nowMs && other.name === holding.name,
    );
    const others = remainingMs > 0 ? beside.filter((other) => excludes(other, holding)) : [];
    for (const other of others)
      this.violations.push(
        `${holding.form} ${holding.name} of ${holding.who} at ${nowMs}, beside ${other.who}'s until ${other.untilMs}`,
      );
    this.#holdings.add(begun);
    this.held[holding.form] += 1;
    return begun;
  }

  /** Returns false when the promised time is over. */
  look(holding: Holding, remainingMs: number): boolean {
    const nowMs = this.#world.clock.monotonicMs();
    if (remainingMs > 0) holding.untilMs = Math.max(holding.untilMs, nowMs + remainingMs);
    return holding.untilMs > nowMs;
  }

  end(holding: Holding): void {
    this.#holdings.delete(holding);
  }
}

function excludes(one: Pick<Holding, "form" | "slot">, other: Pick<Holding, "form" | "slot">): boolean {
  if (one.form === "counted") return one.slot === other.slot;
  return one.form !== "reader" || other.form !== "reader";
}

/** A participant whose system clock steps. */
async function participant(ground: Ground, world: VirtualWorld, name: string) {
  const clock = { offsetMs: 0 };
  const own: World = {
    clock: {
      monotonicMs: () => world.clock.monotonicMs(),
      wallMs: () => world.clock.wallMs() + clock.offsetMs,
    },
    timers: world.timers,
    random: world.random,
  };
  return { name, clock, leases: new LeaseManager(await ground.open(name, own), own) };
}

type Participant = Awaited<ReturnType<typeof participant>>;

const usual = new Set([
  "TIMEOUT",
  "LEASE_HELD",
  "NO_QUORUM",
  "LEASE_LOST",
  "CLOCK_SKEW",
  "UNREACHABLE",
  "OVERLOADED",
]);

class Day {
  readonly world: VirtualWorld;
  readonly oracle: Oracle;
  readonly ground: Ground;
  readonly unexpected: string[] = [];
  readonly #random: Xorshift;
  readonly #isCalm: boolean;
  lost = 0;

  constructor(make: MakeGround, seed: number, isCalm: boolean) {
    this.world = new VirtualWorld({ seed });
    this.#random = new Xorshift(seed);
    this.#isCalm = isCalm;
    this.ground = make(this.world, this.#random);
    this.oracle = new Oracle(this.world);
  }

  #draw(below: number): number {
    return Math.floor(this.#random.next() * below);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.world.timers.after(ms, resolve));
  }

  /** Holds the lease for a while or, if it is lost, for the promised time. */
  async #use(who: Participant, lease: Lease | LeaseSet, form: Holding["form"], name?: string): Promise<void> {
    const leases = "leases" in lease ? lease.leases : [lease];
    const holdings = leases.map(({ resource, slot }) =>
      this.oracle.begin({ name: name ?? resource, who: who.name, form, slot }, lease.remaining()),
    );
    const endMs = this.world.clock.monotonicMs() + this.#draw(1.5 * this.ground.ttlMs);
    for (;;) {
      const leftMs = lease.remaining();
      // Looks at all, not only up to the first that is promised.
      const isPromised = holdings.map((holding) => this.oracle.look(holding, leftMs)).some(Boolean);
      const isOver = leftMs > 0 && this.world.clock.monotonicMs() >= endMs;
      if (!isPromised || isOver) break;
      await this.sleep(15);
    }
    if (lease.remaining() === 0) this.lost += 1;
    for (const holding of holdings) this.oracle.end(holding);
    await lease.release();
  }

  /** One call, which may be aborted at any moment. */
  async #call(who: Participant): Promise<void> {
    const stop = new AbortController();
    const { leases } = who;
    const options = {
      ttl: this.ground.ttlMs,
      wait: this.#random.next() < 0.2 ? 0 : this.#draw(3 * this.ground.ttlMs),
      signal: stop.signal,
      // A small clock step can only end a lease without automatic renewal.
      autoRenew: this.#random.next() < 0.5,
    };
    const abort = this.world.timers.after(this.#draw(3 * this.ground.ttlMs), () =>
      stop.abort(new Error("aborted")),
    );
    try {
      switch (this.#draw(6)) {
        case 0:
          return await this.#use(
            who,
            await leases.acquire(names.plain[this.#draw(2)]!, options),
            "exclusive",
          );
        case 1:
          return await this.#use(who, await leases.acquireAll(names.plain, options), "exclusive");
        case 2:
        case 3: {
          const lease = await leases.acquire(names.pool, { ...options, limit });
          return await this.#use(who, lease, "counted", names.pool);
        }
        case 4:
          return await this.#use(
            who,
            await leases.acquire(names.shared, { ...options, mode: "shared" }),
            "reader",
          );
        default:
          return await this.#use(who, await leases.acquire(names.shared, options), "writer");
      }
    } catch (error) {
      const isUsual = error instanceof LeaseholdError ? usual.has(error.code) : error === stop.signal.reason;
      if (!isUsual) this.unexpected.push(String(error));
    } finally {
      abort.cancel();
    }
  }

  /** Steps a system clock: a little, so that leases expire early, or so far that it is a clock fault. */
  #stepClock({ clock }: Participant): void {
    const { apartMs, ttlMs } = this.ground;
    if (apartMs !== undefined) {
      clock.offsetMs = (this.#random.next() - 0.5) * apartMs;
      return;
    }
    const share = this.#random.next() < 0.9 ? 0.09 : 0.5;
    const aheadMs = (this.#random.next() < 0.8 ? 1 : -1) * share * this.#random.next() * ttlMs;
    clock.offsetMs = Math.abs(clock.offsetMs + aheadMs) < ttlMs ? clock.offsetMs + aheadMs : 0;
  }

  async #disturb(all: readonly Participant[], until: { isOver: boolean }): Promise<void> {
    while (!until.isOver) {
      await this.sleep(20 + this.#draw(200));
      if (this.#random.next() < 0.7) this.#stepClock(all[this.#draw(all.length)]!);
      if (this.#random.next() < 0.2) this.ground.disturb();
      await this.sleep(this.#draw(150));
      this.ground.heal();
    }
  }

  async run(calls: number): Promise<string[]> {
    const all = await this.#openAll(["x", "y", "z"]);
    const until = { isOver: false };
    const disturbing = this.#isCalm ? undefined : this.#disturb(all, until);
    const work = all.flatMap((who) =>
      [1, 2, 3].map(async () => {
        for (let count = 0; count < calls; count += 1) {
          await this.sleep(this.#draw(100));
          await this.#call(who);
        }
      }),
    );
    await during(this.world, Promise.all(work));
    until.isOver = true;
    if (disturbing !== undefined) await during(this.world, disturbing);
    const { leases } = (await this.#openAll(["last"]))[0]!;
    // Leases that were released while messages were lost, or that a clock step has ended, have to expire
    // first.
    const options = { ttl: this.ground.ttlMs, wait: this.#isCalm ? 0 : 4 * this.ground.ttlMs };
    const left = await during(this.world, everything(leases, options).catch(String));
    await during(
      this.world,
      Promise.all([leases, ...all.map((who) => who.leases)].map((each) => each.close())),
    );
    return left === undefined ? [] : [`left behind: ${left}`];
  }

  #openAll(these: readonly string[]): Promise<Participant[]> {
    return during(this.world, Promise.all(these.map((name) => participant(this.ground, this.world, name))));
  }
}

/** Advances time until the promise settles. */
async function during<T>(world: VirtualWorld, done: Promise<T>): Promise<T> {
  const seen = { isDone: false };
  const end = () => void (seen.isDone = true);
  done.then(end, end);
  for (let steps = 0; !seen.isDone && steps < 20_000; steps += 1) await world.advance(20);
  if (!seen.isDone) throw new Error("it never ends");
  return done;
}

/** Takes everything at the same time. */
async function everything(leases: Leases, options: { ttl: number; wait: number }): Promise<undefined> {
  const held: Pick<Lease, "release">[] = [await leases.acquireAll(names.plain, options)];
  for (let count = 0; count < limit; count += 1)
    held.push(await leases.acquire(names.pool, { ...options, limit }));
  for (let count = 0; count < readersMax; count += 1)
    held.push(await leases.acquire(names.shared, { ...options, mode: "shared" }));
  await Promise.all(held.map((lease) => lease.release()));
  const writer = await leases.acquire(names.shared, options);
  await writer.release();
}

const days = 3 * effort;

describe.each(Object.keys(grounds))("on %s", (kind) => {
  const make = grounds[kind]!;

  test("all forms exclude whom they should, whatever is aborted, lost or stepped, and leave nothing behind", async () => {
    const held = { exclusive: 0, counted: 0, reader: 0, writer: 0 };
    let lost = 0;
    for (let day = 0; day < days; day += 1) {
      const seed = seedOf() * 1_000 + day;
      const one = new Day(make, seed, day % 3 === 2);
      const left = await one.run(6);
      expect({ seed, found: [...one.oracle.violations, ...one.unexpected, ...left] }).toEqual({
        seed,
        found: [],
      });
      for (const form of ["exclusive", "counted", "reader", "writer"] as const)
        held[form] += one.oracle.held[form];
      lost += one.lost;
    }
    for (const count of Object.values(held)) expect(count).toBeGreaterThan(days);
    expect(lost).toBeGreaterThan(0);
  });

  /** Two participants without faults. */
  async function two() {
    const world = new VirtualWorld();
    const ground = make(world, new Xorshift(1));
    const [one, other] = await during(
      world,
      Promise.all(["one", "other"].map((name) => participant(ground, world, name))),
    );
    const options = { ttl: ground.ttlMs, wait: 0 } as const;
    return { world, options, one: one!.leases, other: other!.leases };
  }

  const outcome = (call: Promise<unknown>) =>
    call.then(
      () => "held",
      (error: LeaseholdError) => error.code,
    );

  test(`${limitMax} hold a counted lease, half of them elsewhere; one more is refused, and a greater limit is none`, async () => {
    const { world, options, one, other } = await two();
    const taking = async (leases: Leases) => {
      for (let count = 0; count < limitMax / 2; count += 1)
        await leases.acquire("pool", { ...options, wait: 4_000, limit: limitMax });
    };
    // Two at once.
    await during(world, Promise.all([taking(one), taking(other)]));
    const more = [limitMax, limitMax + 1].map((limit) =>
      outcome(other.acquire("pool", { ...options, limit })),
    );
    expect(await during(world, Promise.all(more))).toEqual(["LEASE_HELD", "INVALID_CONFIG"]);
    await during(world, Promise.all([one.close(), other.close()]));
  });

  test(`${readersMax} readers are in; one more waits, and of two writers one is in when they have gone`, async () => {
    const { world, options, one, other } = await two();
    const shared = { ...options, wait: 8_000, mode: "shared" } as const;
    const reading = Array.from({ length: readersMax }, (_, count) =>
      (count % 2 === 0 ? one : other).acquire(names.shared, shared),
    );
    const readers = await during(world, Promise.all(reading));
    const refused = outcome(one.acquire(names.shared, { ...shared, wait: 0 }));
    expect(await during(world, refused)).toBe("LEASE_HELD");
    const writing = [one, other].map((leases) => leases.acquire(names.shared, { ...options, wait: 8_000 }));
    await world.advance(200);
    await during(world, Promise.all(readers.map((reader) => reader.release())));
    const first = await during(world, Promise.race(writing));
    await world.advance(500);
    expect(
      await during(
        world,
        Promise.all([one, other].map((each) => outcome(each.acquire(names.shared, options)))),
      ),
    ).toEqual(["LEASE_HELD", "LEASE_HELD"]);
    await during(world, first.release());
    const second = (await during(world, Promise.all(writing))).find((lease) => lease !== first)!;
    expect(second.remaining()).toBeGreaterThan(0);
    await during(world, Promise.all([one.close(), other.close()]));
  });

  test(`${leasesOfSetMax} names are taken by two at once in any order, one after the other; one more is refused`, async () => {
    const { world, options, one, other } = await two();
    const all = Array.from({ length: leasesOfSetMax }, (_, index) => `n${index}`);
    const stays = { ...options, wait: 20_000 };
    const sets = [one.acquireAll(all, stays), other.acquireAll(all.toReversed(), stays)];
    const first = await during(world, Promise.race(sets));
    expect(first.leases).toHaveLength(leasesOfSetMax);
    await during(world, first.release());
    const second = (await during(world, Promise.all(sets))).find((set) => set !== first)!;
    second.assertHeld();
    expect(await outcome(one.acquireAll([...all, "more"], options))).toBe("INVALID_NAME");
    // A caller that is stopped halfway gives back what it has.
    const last = second.leases.at(-1)!;
    await during(world, Promise.all(second.leases.slice(0, -1).map((lease) => lease.release())));
    const stop = new AbortController();
    const halfway = outcome(one.acquireAll(all, { ...stays, signal: stop.signal }));
    await world.advance(4_000);
    expect(last.remaining()).toBeGreaterThan(0);
    stop.abort(new LeaseholdError("TIMEOUT"));
    expect(await during(world, halfway)).toBe("TIMEOUT");
    await during(world, last.release());
    expect(await during(world, other.list("n"))).toEqual([]);
    await during(world, Promise.all([one.close(), other.close()]));
  });
});
