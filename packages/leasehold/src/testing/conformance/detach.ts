import type { Lease } from "../../lease/types.js";
import { check, codeOf, describe, type Stage, thrown } from "./stage.js";

function checkDetached(lease: Lease): void {
  check(lease.remaining() === 0, "a detached lease is still held");
  const error = thrown(() => lease.assertHeld());
  const reason = error instanceof Error && "reason" in error ? error.reason : undefined;
  check(codeOf(error) === "LEASE_LOST" && reason === "detached", `it ended with ${describe(error)}`);
  check(lease.signal.aborted, "the signal of a detached lease has not aborted");
}

export const detachCases = {
  "a detached lease blocks its resource until it expires, whatever becomes of its participant": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "detached");
    const detaching = lease.detach();
    checkDetached(lease);
    const ticket = await stage.until(detaching, "detach()");
    const { resource, holder, token, remainingMs } = JSON.parse(JSON.stringify(ticket)) as typeof ticket;
    check(resource === lease.resource && holder === lease.holder, "the ticket names another lease");
    check(token === String(lease.token), `the ticket's token is ${token}`);
    check(remainingMs > 0 && remainingMs <= stage.ttlMs, `the reported remainder is ${remainingMs} ms`);
    await stage.refused(bob, "detached", "while a detached lease ran");
    await stage.refused(alice, "detached", "while it let its own lease run out");
    await stage.until(lease.release(), "release() after detach()");
    await stage.until(alice.close(), "close() after detach()");
    await stage.pass(0.4 * remainingMs);
    await stage.refused(bob, "detached", "after the participant of a detached lease was closed");
    const next = await stage.until(stage.wait(bob, "detached"), "the end of a detached lease");
    check(next.token > lease.token, `the token went from ${lease.token} to ${next.token}`);
  },

  "a detached lease is not renewed, and its own participant can acquire the resource again": async (
    stage: Stage,
  ) => {
    const alice = await stage.open("alice");
    const lease = await stage.take(alice, "again");
    await stage.pass(0.7 * stage.ttlMs);
    const { remainingMs } = await stage.until(lease.detach(), "detach()");
    await stage.pass(0.5 * remainingMs);
    await stage.refused(alice, "again", "while it let its own lease run out");
    const next = await stage.until(stage.wait(alice, "again"), "the end of a detached lease");
    check(next.token > lease.token, `the token went from ${lease.token} to ${next.token}`);
    next.assertHeld();
  },
};
