import { expect, test } from "vitest";
import { delayMs, leaseMsMax, Stage } from "../../../../../test/support/farm-stage.js";
import { Driver } from "../driver.js";
import { MemoryStore } from "../memory/memory-store.js";
import { Farm } from "./farm.js";

test("the first read of a look confirms the farm, also when the look raises the bound on epochs", async () => {
  const stage = new Stage();
  const { world, media } = stage;
  const stores = media.map((medium) => new MemoryStore(medium, "alice"));
  const driver = new Driver(stores, world);
  const settings = { leaseMsMax, delayMs, pollMs: 5, clockRateError: 0.1 };
  const traits = stores.map((store) => store.traits);
  const farm = new Farm(traits, settings, { atomic: 4n, slotted: 4n << 32n });
  await stage.wait(driver.run(farm.look()));
  expect(farm.mayTake(4n)).toBe(true);
  // Each round of a look takes δ: one store is silent.
  media[2]!.stall("requests");
  await world.advance(leaseMsMax - delayMs - 5);
  const tending = farm.tend(driver);
  await world.advance(delayMs + 10);
  expect(farm.mayTake(5n)).toBe(false);
  expect(farm.ready(driver.now())).toBe(3);
  await tending;
  await world.advance(3 * delayMs);
  expect(farm.mayTake(5n)).toBe(true);
  await driver.close();
});

test.each([5, 45])(
  "a renewal that begins %i ms before the last look expires waits for the next one, and no longer",
  async (leftMs) => {
    const stage = new Stage(3, { kind: "slotted" });
    const { world, media } = stage;
    const nowMs = () => world.clock.monotonicMs();
    const alice = await stage.open("alice");
    const wish = { resource: "r", ttlMs: leaseMsMax, timeoutMs: 3 * leaseMsMax };
    const outcome = await stage.wait(alice.attempt({ ...wish, contended: false, waiting: true }));
    if (outcome.kind !== "granted") throw new Error(outcome.kind);
    const { grant } = outcome;
    for (const medium of media) medium.latencyMs = { request: 5, answer: 5 };
    // Each round of a look takes δ: one store is silent.
    media[2]!.stall("requests");
    const renew = () => stage.wait(alice.renew(grant, leaseMsMax));
    await world.advance(leaseMsMax / 2);
    const lookMs = nowMs();
    expect(await renew()).toBe(true);
    await world.advance(lookMs + 0.45 * leaseMsMax - nowMs());
    expect(await renew()).toBe(true);
    await world.advance(lookMs + leaseMsMax - leftMs - nowMs());
    const begunMs = nowMs();
    expect(await renew()).toBe(true);
    expect(nowMs() - begunMs).toBeLessThan(5 * delayMs);
  },
);
