import { describe, expect, test } from "vitest";
import { effort } from "../../../../../test/support/effort.js";
import { MemoryFarm } from "../../../../../test/support/memory-farm.js";
import type { Cancellation } from "../../lease/provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { decodeRecord } from "../record/codec.js";
import type { DeltaProvider } from "./provider.js";
import { leaseRegister } from "../record/registers.js";
import type { Store } from "../store.js";

const ttlMs = 1_000;
/** Longer than any attempt here. */
const conditionalMs = 40;
const paperMs = 2_000;

async function until<T>(world: VirtualWorld, promise: Promise<T>): Promise<T> {
  const seen = { isSettled: false };
  const settle = () => void (seen.isSettled = true);
  promise.then(settle, settle);
  await world.settle();
  while (!seen.isSettled) await world.advance(1);
  return promise;
}

/** An attempt whose caller gives up after a while, and the records that it leaves. */
async function cancelledAfter(
  ms: number,
  kind: "atomic" | "slotted",
  before: (alice: DeltaProvider, farm: MemoryFarm) => Promise<unknown>,
) {
  const world = new VirtualWorld();
  const farm = new MemoryFarm(world, 3, { delayMs: 50, kind });
  const open = (name: string, wrap?: (store: Store) => Store) =>
    until(world, farm.open(name, world, { leaseMsMax: ttlMs }, wrap));
  const [alice, bob] = [await open("alice"), await open("bob")];
  farm.media.forEach((medium, index) => (medium.latencyMs = { request: 1 + index, answer: 2 + 3 * index }));
  await until(world, before(alice, farm));
  const cancellation: Cancellation & { cancelled: boolean } = { cancelled: false, onCancel: undefined };
  const request = { resource: "r", ttlMs, timeoutMs: 500, contended: false, waiting: true };
  const attempt = bob.attempt(request, cancellation);
  await world.advance(ms);
  cancellation.cancelled = true;
  cancellation.onCancel?.();
  const outcome = await until(world, attempt);
  await world.advance(100);
  const records = farm.media.flatMap((medium) => medium.cells(leaseRegister("r")).map(decodeRecord));
  const held = records.filter(({ state, writer }) => state === "held" && writer === bob.holder).length;
  if (outcome.kind === "granted") await until(world, bob.release(outcome.grant));
  await world.advance(100);
  const carol = await open("carol");
  const next = await until(world, carol.attempt({ ...request, timeoutMs: 5_000 }));
  await Promise.all([alice.close(), bob.close(), carol.close()]);
  await world.advance(5_000);
  return { kind: outcome.kind, held, next: next.kind, timers: world.pendingTimers };
}

describe.each([
  ["atomic", 1, conditionalMs],
  ["slotted", effort > 1 ? 37 : 87, paperMs],
] as const)("a caller that gives up at any moment, on %s stores", (kind, stepMs, lastMs) => {
  test.each([
    ["a free resource", async () => undefined],
    [
      "a resource that two stores have, one of which is late",
      async (alice: DeltaProvider, farm: MemoryFarm) => {
        farm.media[2]!.latencyMs = { request: 45, answer: 45 };
        const request = { resource: "r", ttlMs, timeoutMs: 5_000, contended: false, waiting: true };
        const outcome = await alice.attempt(request);
        if (outcome.kind === "granted") await alice.release(outcome.grant);
      },
    ],
  ])("leaves nothing held: %s", async (_, before) => {
    for (let ms = 0; ms < lastMs; ms += stepMs) {
      const { kind: outcome, held, ...rest } = await cancelledAfter(ms, kind, before);
      const left = outcome === "granted" ? 0 : held;
      expect({ ms, left, ...rest }).toEqual({ ms, left: 0, next: "granted", timers: 0 });
    }
  });
});
