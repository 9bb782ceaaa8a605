import type { AcquireOptions, Lease, Leases } from "../../lease/types.js";
import { check, describe, rejection, type Stage } from "./stage.js";

export const waitCases = {
  "a release lets a waiter in": async (stage: Stage) => {
    const { bob, held } = await heldByAlice(stage, "waiter");
    const waiting = stage.wait(bob, "waiter");
    await stage.pass(stage.ttlMs / 2);
    held.assertHeld();
    await stage.until(held.release(), "release");
    (await stage.until(waiting, "the wait after a release", stage.takeoverMs(bob))).assertHeld();
  },

  "a wait ends at its deadline with TIMEOUT": async (stage: Stage) => {
    const { alice, bob, held } = await heldByAlice(stage, "deadline");
    for (const [leases, who] of [
      [bob, "another participant"],
      [alice, "the same participant"],
    ] as const) {
      const seen = { hasEnded: false };
      const failure = rejection(acquire(stage, leases, "deadline", { wait: stage.ttlMs })).finally(() => {
        seen.hasEnded = true;
      });
      await stage.pass(stage.ttlMs / 2);
      check(!seen.hasEnded, `the wait of ${who} ended long before its deadline`);
      await stage.rejectsWith(raise(failure), "TIMEOUT", `the wait of ${who}`);
    }
    held.assertHeld();
  },

  "wait: 0 does not wait (LEASE_HELD)": async (stage: Stage) => {
    const { alice, bob } = await heldByAlice(stage, "nowait");
    for (const leases of [bob, alice]) {
      const call = acquire(stage, leases, "nowait", { wait: 0 });
      await stage.rejectsWith(call, "LEASE_HELD", "an acquisition that does not wait");
    }
  },

  "a signal ends a wait soon, with its own reason": async (stage: Stage) => {
    const { alice, bob, held } = await heldByAlice(stage, "abort");
    for (const leases of [bob, alice]) {
      const controller = new AbortController();
      const reason = new Error("the caller gave up");
      const { signal } = controller;
      const failure = rejection(acquire(stage, leases, "abort", { wait: 100 * stage.ttlMs, signal }));
      await stage.pass(stage.ttlMs / 4);
      controller.abort(reason);
      const error = await stage.until(failure, "the abort of a wait", stage.ttlMs / 2);
      check(error === reason, `an aborted wait ended with ${describe(error)}`);
    }
    held.assertHeld();
  },

  "a signal that has already aborted ends the call": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const reason = new Error("too late");
    const signal = AbortSignal.abort(reason);
    const options = { ttl: stage.ttlMs, signal };
    for (const method of ["acquire", "tryAcquire"] as const) {
      const call = alice[method](stage.name("aborted"), options);
      const error = await stage.until(rejection(call), `${method} with an aborted signal`);
      check(error === reason, `${method} with an aborted signal ended with ${describe(error)}`);
    }
    await stage.takeSoon(alice, "aborted", "the acquisition after an aborted call");
  },

  "an aborted call leaves nothing behind": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    for (let delayMs = 0; delayMs < 4; delayMs += 1) {
      const resource = `behind/${delayMs}`;
      const controller = new AbortController();
      const reason = new Error("the caller gave up");
      const call = acquire(stage, bob, resource, { signal: controller.signal });
      const failure = rejection(call);
      if (delayMs > 0) await stage.pass(delayMs);
      controller.abort(reason);
      const error = await stage.until(failure, "an aborted acquisition", stage.ttlMs / 2);
      check(error === undefined || error === reason, `an aborted acquisition ended with ${describe(error)}`);
      // The acquisition was faster than the abort.
      if (error === undefined) await stage.until((await call).release(), "release");
      await stage.takeSoon(alice, resource, "the acquisition by another after an aborted call");
    }
  },

  "close releases all leases and ends all waits with CLOSED": async (stage: Stage) => {
    const { alice, bob, held } = await heldByAlice(stage, "close");
    const own = await stage.take(bob, "close/own");
    const waiting = rejection(acquire(stage, bob, "close", { wait: 100 * stage.ttlMs }));
    await stage.pass(stage.ttlMs / 10);
    await stage.until(bob.close(), "close");
    await stage.rejectsWith(raise(waiting), "CLOSED", "a wait during close");
    check(own.remaining() === 0 && own.signal.aborted, "a lease survived the close of its participant");
    await stage.takeSoon(alice, "close/own", "the acquisition after the holder closed");
    await stage.until(bob.close(), "a second close");
    const options = { ttl: stage.ttlMs };
    await stage.rejectsWith(bob.acquire(stage.name("late"), options), "CLOSED", "acquire after close");
    await stage.rejectsWith(bob.tryAcquire(stage.name("late"), options), "CLOSED", "tryAcquire after close");
    await stage.rejectsWith(bob.holder(stage.name("late")), "CLOSED", "holder after close");
    await stage.rejectsWith(bob.list(), "CLOSED", "list after close");
    held.assertHeld();
  },
};

interface Held {
  readonly alice: Leases;
  readonly bob: Leases;
  readonly held: Lease;
}

async function heldByAlice(stage: Stage, resource: string): Promise<Held> {
  const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
  return { alice, bob, held: await stage.take(alice, resource) };
}

function acquire(stage: Stage, leases: Leases, resource: string, options: AcquireOptions): Promise<Lease> {
  return leases.acquire(stage.name(resource), { ttl: stage.ttlMs, ...options });
}

/** Rethrows an error that was caught early so that it counts as handled. */
async function raise(failure: Promise<unknown>): Promise<void> {
  const error = await failure;
  if (error !== undefined) throw error;
}
