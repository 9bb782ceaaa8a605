import type { Lease } from "../../lease/types.js";
import { check, type Stage } from "./stage.js";

const limit = 3;

export const countedLeaseCases = {
  "at most `limit` hold a counted lease, each with a slot and a token of its own": async (stage: Stage) => {
    const opened = [await stage.open("alice"), await stage.open("bob")];
    const name = stage.name("counted");
    const held: Lease[] = [];
    for (let count = 0; count < limit; count += 1) {
      const call = opened[count % 2]!.acquire(name, { ttl: stage.ttlMs, limit, wait: 20 * stage.ttlMs });
      held.push(await stage.until(call, `slot ${count} of ${limit} free ones`));
    }
    const slots = held.map(({ slot }) => slot).toSorted();
    check(slots.join() === "0,1,2", `the slots of ${limit} holders are ${slots.join()}`);
    check(new Set(held.map(({ resource }) => resource)).size === limit, "two have the same resource");
    for (const leases of opened) {
      const other = await stage.until(leases.tryAcquire(name, { ttl: stage.ttlMs, limit }), "tryAcquire");
      check(other === undefined, `one more than ${limit} got a slot`);
      const call = leases.acquire(name, { ttl: stage.ttlMs, limit, wait: 0 });
      await stage.rejectsWith(call, "LEASE_HELD", "acquire of a taken counted lease with wait: 0");
    }
    const grown = await stage.until(
      opened[1]!.tryAcquire(name, { ttl: stage.ttlMs, limit: limit + 1 }),
      "tryAcquire with a greater limit",
    );
    check(grown?.slot === limit, `with a greater limit the slot is ${grown?.slot}`);
    for (const lease of held) lease.assertHeld();
  },

  "a call without a limit is for slot 0, and holds beside the holders of the other slots": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const options = { ttl: stage.ttlMs, wait: 20 * stage.ttlMs };
    const take = (leases: typeof alice) =>
      stage.until(leases.acquire(stage.name("plain"), { ...options, limit: 2 }), "a slot");
    const [one, two] = [await take(alice), await take(bob)];
    await stage.refused(bob, "plain", "without a limit, while both slots are taken");
    const [zero, other] = one.slot === 0 ? [one, two] : [two, one];
    await stage.until(zero.release(), "release");
    const plain = await stage.takeSoon(bob, "plain", "a call without a limit when slot 0 is free");
    check(plain.slot === 0 && plain.token > zero.token, "a call without a limit does not have slot 0");
    other.assertHeld();
    const late = alice.tryAcquire(stage.name("plain"), { ttl: stage.ttlMs, limit: 2 });
    check((await stage.until(late, "tryAcquire")) === undefined, "slot 0 was held twice");
  },

  "a slot that is released, or expires, goes to a waiter, with a greater token": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const options = { ttl: stage.ttlMs, limit: 2, wait: stage.takeoverMs(alice) };
    const acquire = (leases: typeof alice, autoRenew = true) =>
      leases.acquire(stage.name("slots"), { ...options, autoRenew });
    const kept = await stage.until(acquire(alice), "the first slot");
    const given = await stage.until(acquire(alice), "the second slot");
    const waiting = acquire(bob, false);
    waiting.catch(() => undefined);
    await stage.pass(stage.ttlMs / 10);
    await stage.until(given.release(), "release");
    const next = await stage.until(waiting, "the wait for a slot that was released", options.wait);
    check(
      next.resource === given.resource,
      `the free slot is ${given.resource}, the acquired one ${next.resource}`,
    );
    check(next.token > given.token, `the token of a slot went from ${given.token} to ${next.token}`);
    const last = await stage.until(acquire(alice), "the wait for a slot that runs out", options.wait);
    check(
      last.resource === next.resource && last.token > next.token,
      "an expired slot was not acquired again",
    );
    check(next.remaining() === 0, "a slot was acquired while its holder had it");
    kept.assertHeld();
  },

  "a limit is a whole number from 1 to 64, and no name is a slot's": async (stage: Stage) => {
    const alice = await stage.open("alice");
    for (const bad of [0, -1, 1.5, 65, Number.NaN]) {
      const call = alice.tryAcquire(stage.name("limits"), { limit: bad });
      await stage.rejectsWith(call, "INVALID_CONFIG", `a limit of ${bad}`);
    }
    for (const name of [stage.name("limits/~1"), "x".repeat(512)]) {
      const call = alice.acquire(name, { limit: 2 });
      await stage.rejectsWith(call, "INVALID_NAME", "the name of a slot, or a name too long for slots");
    }
    await stage.rejectsWith(alice.tryAcquire(stage.name("limits/~12")), "INVALID_NAME", "a slot's name");
  },
};
