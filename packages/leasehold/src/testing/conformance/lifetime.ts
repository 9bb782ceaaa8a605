import type { Lease } from "../../lease/types.js";
import { check, codeOf, describe, rejection, type Stage, thrown } from "./stage.js";

export const lifetimeCases = {
  "a renewal extends the lease and keeps its token": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "renew", { autoRenew: false });
    const { token } = lease;
    for (let renewal = 0; renewal < 3; renewal += 1) {
      await stage.pass(0.6 * stage.ttlMs);
      const beforeMs = lease.remaining();
      await stage.until(lease.renew(), "renew", stage.ttlMs);
      const afterMs = lease.remaining();
      check(afterMs > beforeMs, `a renewal changed the remaining time from ${beforeMs} to ${afterMs} ms`);
      check(lease.token === token, `a renewal changed the token from ${token} to ${lease.token}`);
    }
    await stage.refused(bob, "renew", "although it had been renewed");
    lease.assertHeld();
  },

  "a lease renews itself": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "auto");
    for (let third = 0; third < 9; third += 1) {
      await stage.pass(stage.ttlMs / 3);
      check(lease.remaining() > 0, `the lease was lost after ${third + 1} thirds of its TTL`);
      if (third % 3 === 2) await stage.refused(bob, "auto", "while its holder renewed it");
    }
    check(!lease.signal.aborted, "the signal of a held lease has aborted");
  },

  "remaining() is at most the TTL and falls as time passes": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const lease = await stage.take(alice, "remaining", { autoRenew: false });
    let lastMs = stage.ttlMs;
    for (let look = 0; look < 8; look += 1) {
      const leftMs = lease.remaining();
      check(leftMs <= lastMs, `remaining() went from ${lastMs} to ${leftMs} ms without a renewal`);
      lastMs = leftMs - stage.ttlMs / 20;
      await stage.pass(stage.ttlMs / 10);
    }
  },

  "a lease that is not renewed expires, and nobody gets the resource before that": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const first = await stage.take(alice, "expiry", { autoRenew: false });
    let leftMs = Infinity;
    const second = stage.wait(bob, "expiry").then((lease) => {
      leftMs = first.remaining();
      return lease;
    });
    const lease = await stage.until(second, "the takeover after the end of the lease", stage.takeoverMs(bob));
    check(leftMs === 0, `another got the resource while ${leftMs} ms remained of the former lease`);
    lease.assertHeld();
  },

  "a loss is noticed: the signal aborts, and the lease stays lost": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const lease = await stage.take(alice, "loss", { autoRenew: false });
    const { signal } = lease;
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await stage.until(aborted, "the abort of the signal", 3 * stage.ttlMs);
    checkLost(lease);
    await stage.rejectsWith(lease.renew(), "LEASE_LOST", "renew of a lost lease");
    const failure = await stage.until(rejection(lease.release()), "release of a lost lease");
    check(failure === undefined, `release of a lost lease threw ${describe(failure)}`);
    await stage.pass(stage.ttlMs / 10);
    checkLost(lease);
  },

  "assertHeld checks for the requested time": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const lease = await stage.take(alice, "assert");
    check(thrown(() => lease.assertHeld()) === undefined, "assertHeld threw for a lease that is held");
    const error = thrown(() => lease.assertHeld(2 * stage.ttlMs));
    check(codeOf(error) === "LEASE_LOST", `assertHeld of more than the TTL ended with ${describe(error)}`);
    check(
      thrown(() => lease.assertHeld()) === undefined,
      "asking for more time than remains ended the lease",
    );
  },

  "a participant that was stopped finds its lease lost on its first check": async (stage: Stage) => {
    const { ground } = stage;
    // Not every ground can stop one process.
    if (ground.freeze === undefined) return;
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "frozen");
    const seen = { hasSuccessor: false };
    const second = stage.wait(bob, "frozen").then((next) => {
      seen.hasSuccessor = true;
      return next;
    });
    second.catch(() => undefined);
    await ground.freeze(alice, 5 * stage.ttlMs + 4 * bob.guarantees.maxClockSkewMs);
    check(seen.hasSuccessor, "nobody got the resource of a process that had been stopped");
    check(lease.remaining() === 0, "a process that had been stopped still trusted its lease");
    checkLost(lease);
    const next = await stage.until(second, "the takeover from a stopped process");
    await stage.pass(stage.ttlMs / 10);
    check(next.remaining() > 0, "a process that had been stopped took the lease from its successor");
  },

  "a release frees the resource at once and ends the lease": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "release");
    const released = lease.release();
    check(lease.remaining() === 0, "a lease that is being released is still held");
    await stage.until(released, "release");
    checkLost(lease);
    await stage.takeSoon(bob, "release", "the acquisition after a release");
  },

  "a release is idempotent": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "twice");
    await stage.until(Promise.all([lease.release(), lease.release()]), "two releases at the same time");
    const next = await stage.takeSoon(bob, "twice", "the acquisition after a release");
    await stage.until(lease.release(), "one more release");
    await stage.until(Promise.resolve(lease[Symbol.asyncDispose]()), "disposal after a release");
    next.assertHeld();
    await stage.refused(alice, "twice", "as the release of an earlier tenure freed it");
  },
};

function checkLost(lease: Lease): void {
  const leftMs = lease.remaining();
  check(leftMs === 0, `${leftMs} ms remain of a lease that is over`);
  const error = thrown(() => lease.assertHeld());
  check(codeOf(error) === "LEASE_LOST", `assertHeld of a lease that is over ended with ${describe(error)}`);
  check(lease.signal.aborted, "the signal of a lease that is over has not aborted");
  check(codeOf(lease.signal.reason) === "LEASE_LOST", "the signal's reason is not LEASE_LOST");
}
