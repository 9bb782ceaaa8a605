import { afterEach, expect, test } from "vitest";
import { contend, Held, Idle, openParts, release, renewND } from "../../entry/delta.js";
import type { FarmParts } from "./parts.js";

const opened: FarmParts[] = [];
let farms = 0;
afterEach(async () => {
  await Promise.all(opened.splice(0).map((farm) => farm.close()));
});

async function open(address: string, name: string): Promise<FarmParts> {
  const farm = await openParts(`delta+memory:${address}`, { name });
  opened.push(farm);
  return farm;
}

test("a lease by the figures is acquired and renewed in real time", async () => {
  const farm = await open(`parts-${(farms += 1)}`, "alice");
  const site = farm.site("r", 1_000);
  const held = await farm.run(contend(site, new Idle()));
  expect(held).toBeInstanceOf(Held);
  const renewed = await farm.run(renewND(site, held as Held));
  expect(renewed.state === "hold" && renewed.remainingMs(farm.now())).toBeGreaterThan(900);
});

test("a signal ends all waits", async () => {
  const address = `parts-${(farms += 1)}`;
  const [alice, bob] = [await open(address, "alice"), await open(address, "bob")];
  await alice.run(contend(alice.site("r"), new Idle()));
  const controller = new AbortController();
  const contending = bob.run(contend(bob.site("r"), new Idle()), controller.signal);
  controller.abort();
  expect(await contending).toMatchObject({ state: "idle", because: "cancelled" });
});

test("readers share, an oracle leads, and consensus uses it", async () => {
  const address = `parts-${(farms += 1)}`;
  const [alice, bob] = [await open(address, "alice"), await open(address, "bob")];
  const [first, second] = [alice.readerSite("r"), bob.readerSite("r")];
  const one = (await alice.run(contend(first, new Idle()))) as Held;
  const two = (await bob.run(contend(second, new Idle()))) as Held;
  expect(two.record.epoch).toBe(one.record.epoch);
  await bob.run(release(second, two));
  expect(one.remainingMs(alice.now())).toBeGreaterThan(0);

  const oracle = alice.leaderOracle("leader");
  const controller = new AbortController();
  const leading = alice.run(oracle.run(), controller.signal);
  const decisions = [
    alice.run(alice.consensus("c", (now) => oracle.isLeader(now)).propose("alice's")),
    bob.run(bob.consensus("c", () => false).propose("bob's")),
  ];
  expect(await Promise.all(decisions)).toEqual(["alice's", "alice's"]);
  controller.abort();
  expect((await leading).state).toBe("idle");
});

test("no lease is longer than the farm's limit: stores that have forgotten wait that long", async () => {
  const farm = await open(`parts-${(farms += 1)}`, "alice");
  for (const leaseMs of [15_001, 0, NaN]) {
    expect(() => farm.site("r", leaseMs)).toThrow(/^a lease must be/);
    expect(() => farm.readerSite("r", leaseMs)).toThrow(
      expect.objectContaining({ code: "INVALID_DURATION" }),
    );
  }
});

test("flease+… has no such parts", async () => {
  await expect(openParts("flease+memory:x")).rejects.toMatchObject({ code: "INVALID_URL" });
});
