import type { Lease, Leases, LeaseSet } from "../../lease/types.js";
import { check, rejection, type Stage } from "./stage.js";

const callsOfEach = 3;

export const leaseSetCases = {
  "using() runs work under the lease, releases it, and resolves with the work's value": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const work = async (lease: Lease) => {
      lease.assertHeld();
      await stage.refused(bob, "using", "while work ran under it");
      return lease.token;
    };
    const used = alice.using(stage.name("using"), { ttl: stage.ttlMs, wait: stage.takeoverMs(alice) }, work);
    const token = await stage.until(used, "using()", stage.takeoverMs(alice));
    const next = await stage.takeSoon(bob, "using", "the acquisition after using()");
    check(next.token > token, `the token went from ${token} to ${next.token}`);
    const bug = new Error("of the work");
    const failing = bob.using(stage.name("failing"), { ttl: stage.ttlMs }, () => Promise.reject(bug));
    const error = await stage.until(rejection(failing), "using() with work that throws");
    check(error === bug, `work that throws ended with ${String(error)}`);
    await stage.takeSoon(alice, "failing", "the acquisition after work that threw");
  },

  "using() rejects (LEASE_LOST) when the lease was lost before the work returned": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const options = { ttl: stage.ttlMs, autoRenew: false };
    const used = alice.using(stage.name("outlived"), options, async (lease) => {
      while (lease.remaining() > 0) await stage.pass(stage.ttlMs / 10);
      return "a value";
    });
    await stage.rejectsWith(used, "LEASE_LOST", "using() with work that outlives its lease");
  },

  "acquireAll() takes all or none, each with a token": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const names = ["all/b", "all/a"].map((name) => stage.name(name));
    const all = await stage.until(alice.acquireAll(names, { ttl: stage.ttlMs }), "acquireAll()");
    all.assertHeld();
    for (const name of names) check(all.get(name).holder === alice.self, `${name} has another holder`);
    const none = bob.acquireAll([stage.name("all/0"), ...names], { ttl: stage.ttlMs, wait: stage.ttlMs / 4 });
    await stage.rejectsWith(none, "TIMEOUT", "acquireAll() with one held resource");
    await stage.takeSoon(alice, "all/0", "the acquisition of a resource that acquireAll() released");
    await stage.until(all.release(), "release");
    check(all.remaining() === 0 && all.signal.aborted, "a released set is still held");
    await stage.takeSoon(bob, "all/a", "the acquisition after a set was released");
  },

  "calls of acquireAll() with the same names in different orders do not deadlock": async (stage: Stage) => {
    const opened = [await stage.open("alice"), await stage.open("bob")];
    const names = ["order/a", "order/b"].map((name) => stage.name(name));
    let holding = 0;
    const work = async (all: LeaseSet) => {
      holding += 1;
      check(holding === 1, "two calls held the same resources");
      await stage.pass(stage.ttlMs / 50);
      all.assertHeld();
      holding -= 1;
    };
    const call = (leases: Leases, index: number) => {
      const given = index % 2 === 0 ? names : names.toReversed();
      return leases.using(given, { ttl: stage.ttlMs, wait: Infinity }, work);
    };
    const calls = opened.flatMap((leases, who) =>
      Array.from({ length: callsOfEach }, (_, index) => call(leases, who + index)),
    );
    const limitMs = 2 * calls.length * stage.takeoverMs(opened[0]!);
    await stage.until(Promise.all(calls), "several calls of using() with several names", limitMs);
  },
};
