import { expect, test } from "vitest";
import { virtualGround } from "../../../../../test/support/virtual-ground.js";
import { MemoryProvider } from "../../testing/memory-provider.js";
import type { Lease } from "../types.js";

const ttlMs = 2_000;

const memoryGround = () =>
  virtualGround(
    ({ ground, world, name, process }) =>
      new MemoryProvider(ground, world, { name, ttlMaxMs: ttlMs, process }),
  );

test("a greater limit admits more at once, and a smaller one takes effect as holders release", async () => {
  const ground = memoryGround();
  const [alice, bob] = [await ground.open("alice"), await ground.open("bob")];
  const held: Lease[] = [];
  for (let count = 0; count < 2; count += 1) held.push(await alice.acquire("pool", { limit: 2, wait: 0 }));
  await expect(bob.acquire("pool", { limit: 2, wait: 0 })).rejects.toMatchObject({ code: "LEASE_HELD" });
  held.push(await bob.acquire("pool", { limit: 3, wait: 0 }));
  let one: Lease | undefined;
  void bob.acquire("pool", { limit: 1 }).then((lease) => (one = lease));
  for (const slot of [2, 1, 0]) {
    await ground.pass(ttlMs);
    expect(one).toBeUndefined();
    await held.find((lease) => lease.slot === slot)!.release();
  }
  await ground.pass(ttlMs);
  expect(one).toMatchObject({ slot: 0, resource: "pool" });
  await ground.close();
});

test("at most `limit` participants lead at a time, and one on standby follows", async () => {
  const ground = memoryGround();
  const opened = [await ground.open("alice"), await ground.open("bob"), await ground.open("carol")];
  const leading = new Map<number, () => void>();
  const terms = opened.map((leases) =>
    leases.lead("workers", ({ slot }) => new Promise<void>((resolve) => void leading.set(slot, resolve)), {
      limit: 2,
    }),
  );
  await ground.pass(ttlMs);
  expect([...leading.keys()].toSorted()).toEqual([0, 1]);
  for (const slot of [0, 1]) leading.get(slot)!();
  leading.clear();
  await ground.pass(ttlMs);
  expect(leading.size).toBe(1);
  for (const stepDown of leading.values()) stepDown();
  await ground.pass(ttlMs);
  expect(await Promise.all(terms)).toEqual([undefined, undefined, undefined]);
  await ground.close();
});
