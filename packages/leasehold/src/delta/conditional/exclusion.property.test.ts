import { expect, test } from "vitest";
import { MemoryFarm } from "../../../../../test/support/memory-farm.js";
import { effort } from "../../../../../test/support/effort.js";
import { LeaseholdError } from "../../lease/errors.js";
import { LeaseManager } from "../../lease/manager/lease-manager.js";
import type { Timers } from "../../common/ports.js";
import type { Lease } from "../../lease/types.js";
import { Xorshift } from "../../common/xorshift.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import type { Store } from "../store.js";

const participants = 4;
const storesOfFarm = 3;
const stepMs = 5;
const steps = 3_000;
const seeds = 3 * effort;
const ttlMs = 400;
/** Timers never fire early, not even by the last bit. */
const roundingMs = 1e-6;

/** How much later than the previous one each participant gets its answers, ms. */
const answerMs = 11;

interface Outcome {
  readonly tenures: number;
  /** How often two participants held at the same moment, and how often a token did not rise. */
  readonly overlaps: number;
  readonly disorders: number;
}

function hardOfHearing(store: Store, timers: Timers, lateMs: number): Store {
  return {
    traits: store.traits,
    close: () => store.close(),
    perform: async (request) => {
      const answer = await store.perform(request);
      await new Promise<void>((resolve) => {
        timers.after(lateMs, resolve);
      });
      return answer;
    },
  };
}

/**
 * Participants whose clocks run at different rates contend for one resource; some of them get answers late.
 * Stores stall before and after operations take effect, answer late, crash and, one at a time, forget. At
 * every step each participant is asked whether it holds.
 */
async function badDays(seed: number): Promise<Outcome> {
  const world = new VirtualWorld({ seed });
  const random = new Xorshift(seed);
  const chance = (probability: number) => random.next() < probability;
  const farm = new MemoryFarm(world, storesOfFarm, { delayMs: 40 });
  const held = new Map<number, Lease>();
  const tokens: bigint[] = [];
  const days = { areOver: false };

  const run = async (index: number) => {
    const rate = 1 + (random.next() - 0.5) * 0.004;
    const { clock, timers } = world;
    const own = {
      clock: { monotonicMs: () => clock.monotonicMs() * rate, wallMs: () => clock.wallMs() },
      timers: {
        after: (delayMs: number, wake: () => void) => timers.after(delayMs / rate + roundingMs, wake),
      },
      random,
    };
    const options = { leaseMsMax: ttlMs, clockRateError: 0.0021 };
    const leases = new LeaseManager(
      await farm.open(`p${index}`, own, options, (store) => hardOfHearing(store, timers, index * answerMs)),
      own,
    );
    while (!days.areOver) {
      try {
        const lease = await leases.acquire("r", { ttl: ttlMs, wait: 2_000, autoRenew: chance(0.5) });
        tokens.push(lease.token);
        held.set(index, lease);
        const workMs = random.next() * 3 * ttlMs;
        await new Promise<void>((resolve) => {
          timers.after(workMs, resolve);
        });
        held.delete(index);
        if (chance(0.8)) await lease.release();
        else await new Promise<void>((resolve) => timers.after(2 * ttlMs, resolve));
        await lease.release();
      } catch (error) {
        if (!(error instanceof LeaseholdError)) throw error;
      }
    }
    await leases.close();
  };

  const runs = Promise.all(Array.from({ length: participants }, (_, index) => run(index)));
  // No fault occurs before all participants have opened the farm.
  await world.advance(1_000);
  let overlaps = 0;
  let forgetAgainStep = 0;
  for (let step = 0; step < steps; step += 1) {
    for (const medium of farm.media) {
      if (chance(0.01)) medium.stall(chance(0.5) ? "requests" : "answers");
      if (chance(0.08)) medium.resume();
      if (chance(0.005)) medium.crash();
      if (chance(0.05)) medium.latencyMs = { request: random.next() * 3, answer: random.next() * 3 };
    }
    // The guarantee covers a minority: a store may forget only when the last one has recovered.
    if (chance(0.02) && step >= forgetAgainStep) {
      farm.media[Math.floor(random.next() * storesOfFarm)]!.forget();
      forgetAgainStep = step + (20 * ttlMs) / stepMs;
    }
    await world.advance(stepMs);
    overlaps += [...held.values()].filter((lease) => lease.remaining() > 0).length > 1 ? 1 : 0;
  }
  days.areOver = true;
  for (const medium of farm.media) medium.resume();
  await world.advance("20s");
  await runs;
  const disorders = tokens.filter((token, index) => index > 0 && token <= tokens[index - 1]!).length;
  return { tenures: tokens.length, overlaps, disorders };
}

test("with faulty stores and clocks there is one holder at a time, and tokens rise", async () => {
  let tenures = 0;
  for (let seed = 1; seed <= seeds; seed += 1) {
    const outcome = await badDays(seed);
    expect({ seed, ...outcome }).toMatchObject({ overlaps: 0, disorders: 0 });
    tenures += outcome.tenures;
  }
  // There were holders, despite the faults.
  expect(tenures).toBeGreaterThan(10 * seeds);
});

test("a hold that counts from the end of its write is detected", async () => {
  const seen = await duringFaults({ holdFromEndOfWrite: true }, async () => {
    // The first seed is known to show it while nothing changes the course of a run; so do 15, 16 and 50.
    for (let seed = 12; seed <= 50; seed += 1) if ((await badDays(seed)).overlaps > 0) return seed;
    return undefined;
  });
  expect(seen).toBeDefined();
});
