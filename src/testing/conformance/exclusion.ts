import type { Leases } from "../../lease/types.js";
import { check, type Stage } from "./stage.js";

const PARTICIPANTS = 3;
const TENURES_OF_EACH = 2;

export const exclusionCases = {
  "at most one participant holds a resource": async (stage: Stage) => {
    let holding = 0;
    let tenures = 0;
    const contend = async (leases: Leases) => {
      for (let tenure = 0; tenure < TENURES_OF_EACH; tenure++) {
        const lease = await stage.wait(leases, "contended");
        holding++;
        check(holding === 1, `${holding} held the resource at the same time`);
        lease.assertHeld();
        await stage.pass(stage.ttlMs / 20);
        check(holding === 1, `${holding} held the resource at the same time`);
        lease.assertHeld();
        holding--;
        tenures++;
        await lease.release();
      }
    };
    const opened = await openMany(stage, PARTICIPANTS);
    await stage.until(Promise.all(opened.map(contend)), "the contention", 10 * stage.takeoverMs(opened[0]!));
    check(tenures === PARTICIPANTS * TENURES_OF_EACH, `only ${tenures} tenures came to pass`);
  },

  "every later tenure has a greater token": async (stage: Stage) => {
    const opened = await openMany(stage, 2);
    const tokens: bigint[] = [];
    for (let round = 0; round < 6; round++) {
      const leases = opened[round % 2]!;
      const autoRenew = round !== 2;
      const call = leases.acquire(stage.name("tokens"), {
        ttl: stage.ttlMs,
        wait: stage.takeoverMs(leases),
        autoRenew,
      });
      const lease = await stage.until(call, "the next tenure", stage.takeoverMs(leases));
      check(typeof lease.token === "bigint", "the token is no bigint");
      tokens.push(lease.token);
      // One tenure ends by running out, the others by release.
      if (autoRenew) await stage.until(lease.release(), "release");
    }
    const rises = tokens.every((token, index) => index === 0 || token > tokens[index - 1]!);
    check(rises, `the tokens of successive tenures were ${tokens.join(", ")}`);
  },

  "callers of one participant are served first in, first out, one at a time": async (stage: Stage) => {
    const leases = await stage.open("alice");
    const order: number[] = [];
    let holding = 0;
    const call = async (place: number) => {
      const lease = await stage.wait(leases, "queue");
      holding++;
      check(holding === 1, "two callers of one participant held the resource: the lease was re-entrant");
      order.push(place);
      await stage.pass(stage.ttlMs / 50);
      holding--;
      await lease.release();
    };
    const places = [0, 1, 2, 3];
    await stage.until(Promise.all(places.map(call)), "the queue", 10 * stage.takeoverMs(leases));
    check(order.join() === places.join(), `callers were served in the order ${order.join(", ")}`);
  },

  "a lease is not re-entrant": async (stage: Stage) => {
    const leases = await stage.open("alice");
    const lease = await stage.take(leases, "reentrant");
    const again = leases.acquire(lease.resource, { ttl: stage.ttlMs, wait: stage.ttlMs / 4 });
    await stage.rejectsWith(again, "TIMEOUT", "a second acquisition by the same participant");
    lease.assertHeld();
  },

  "different resources do not wait for each other": async (stage: Stage) => {
    const leases = await stage.open("alice");
    const names = Array.from({ length: 10 }, (_, index) => `independent/${index}`);
    const held = await Promise.all(names.map((name) => stage.take(leases, name)));
    for (const lease of held) lease.assertHeld();
  },

  "tryAcquire takes a free resource and answers undefined for one that another has": async (stage: Stage) => {
    const [alice, bob] = (await openMany(stage, 2)) as [Leases, Leases];
    const lease = await stage.takeSoon(alice, "try", "tryAcquire of a free resource");
    await stage.refused(bob, "try", "while a participant held it");
    await stage.refused(alice, "try", "while another caller of its own process held it");
    lease.assertHeld();
  },
};

async function openMany(stage: Stage, count: number): Promise<Leases[]> {
  const names = ["alice", "bob", "carol", "dave"].slice(0, count);
  return Promise.all(names.map((name) => stage.open(name)));
}
