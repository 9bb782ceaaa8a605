import type { Lease, Leases } from "../../lease/types.js";
import { check, codeOf, describe, rejection, type Stage } from "./stage.js";

/** Detaches a lease, and fails unless there is a handle if and only if the ground supports it. */
async function detached(stage: Stage, lease: Lease, leases: Leases): Promise<string | undefined> {
  const { handle } = await stage.until(lease.detach(), "detach()");
  const { attach } = leases.guarantees;
  check((handle !== undefined) === attach, `guarantees.attach is ${attach}, and the handle ${handle}`);
  check(handle === undefined || /^[\w.%~-]+$/.test(handle), `the handle ${handle} is not one plain word`);
  if (handle !== undefined) return handle;
  await stage.rejectsWith(leases.attach("lh1.none.1.1.0.x"), "UNSUPPORTED", "attach() where it cannot be");
  return undefined;
}

function attach(stage: Stage, leases: Leases, handle: string): Promise<Lease> {
  return stage.until(leases.attach(handle, { ttl: stage.ttlMs }), "attach()");
}

export const attachCases = {
  "an attached lease is held and renewed, with a greater token, until it is released": async (
    stage: Stage,
  ) => {
    const [alice, bob, carol] = [
      await stage.open("alice"),
      await stage.open("bob"),
      await stage.open("carol, who is new"),
    ];
    const lease = await stage.take(alice, "handed on: ü/'!(%)");
    const handle = await detached(stage, lease, alice);
    if (handle === undefined) return;
    await stage.until(alice.close(), "close() after detach()");
    const next = await attach(stage, bob, handle);
    check(
      next.resource === lease.resource && next.holder === bob.self,
      `${next.holder} has ${next.resource}`,
    );
    check(next.token > lease.token, `the token went from ${lease.token} to ${next.token}`);
    check(lease.remaining() === 0, "a detached lease is still held by its former holder");
    // Waits past the end of the detached lease, however long others have to wait for that.
    for (let passedMs = 0; passedMs < stage.takeoverMs(bob); passedMs += stage.ttlMs / 2) {
      await stage.pass(stage.ttlMs / 2);
      next.assertHeld();
      await stage.refused(carol, "handed on: ü/'!(%)", "while an attached lease was held");
    }
    const { token } = await stage.until(carol.holder(lease.resource), "holder()");
    check(token === next.token, `holder() reports token ${token}`);
    const waits = stage.wait(carol, "handed on: ü/'!(%)");
    await stage.until(next.release(), "release()");
    const last = await stage.until(waits, "the release of an attached lease");
    check(last.token > next.token, `the token went from ${next.token} to ${last.token}`);
  },

  "one handle attaches once, however many callers try it, concurrently or later": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "once");
    const handle = await detached(stage, lease, alice);
    if (handle === undefined) return;
    const calls = [alice, bob, bob].map((leases) => leases.attach(handle, { ttl: stage.ttlMs }));
    const settled = await stage.until(Promise.allSettled(calls), "attach() of three");
    const taken = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    check(taken.filter((each) => each.remaining() > 0).length <= 1, "two hold one attached lease");
    check(taken.length <= 1, `${taken.length} have attached one handle`);
    for (const each of settled)
      if (each.status === "rejected")
        check(codeOf(each.reason) === "HANDLE_SPENT", `attach() ended with ${describe(each.reason)}`);
    for (const each of taken) await stage.until(each.release(), "release()");
    await stage.rejectsWith(bob.attach(handle), "HANDLE_SPENT", "attach() after that");
    await stage.rejectsWith(alice.attach(handle), "HANDLE_SPENT", "attach() by the former holder");
  },

  "a holder can attach its own detached lease, and detach it again": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "and back");
    const handle = await detached(stage, lease, alice);
    if (handle === undefined) return;
    const waits = rejection(alice.acquire(lease.resource, { ttl: stage.ttlMs, wait: stage.ttlMs / 4 }));
    const again = await attach(stage, alice, handle);
    check(
      (await stage.until(waits, "acquire() of a held resource")) !== undefined,
      "a waiter got it as well",
    );
    const second = await detached(stage, again, alice);
    await stage.rejectsWith(bob.attach(handle), "HANDLE_SPENT", "attach() by the first of two handles");
    const last = await attach(stage, bob, second!);
    check(last.token > again.token && again.token > lease.token, "the tokens do not rise");
    last.assertHeld();
  },

  "an expired detached lease can't be attached, and neither can a successor's lease": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "run out");
    const handle = await detached(stage, lease, alice);
    if (handle === undefined) return;
    await stage.refused(bob, "run out", "while a detached lease ran");
    await stage.pass(1.1 * stage.ttlMs);
    await stage.rejectsWith(bob.attach(handle), "HANDLE_SPENT", "attach() of an expired lease");
    const next = await stage.until(stage.wait(bob, "run out"), "the end of a detached lease");
    check(next.token > lease.token, `the token went from ${lease.token} to ${next.token}`);
    await stage.rejectsWith(alice.attach(handle), "HANDLE_SPENT", "attach() of another's lease");
    next.assertHeld();
  },

  "an invalid handle, or one with another pass, is refused and changes nothing": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (!bob.guarantees.attach) return;
    for (const text of ["", "lh1", "x".repeat(10_000), JSON.stringify({ token: "1" })])
      await stage.rejectsWith(bob.attach(text), "INVALID_HANDLE", `attach(${text.slice(0, 20)})`);
    const held = await stage.take(alice, "not detached");
    const handle = (await detached(stage, await stage.take(alice, "detached"), alice))!;
    const other = handle.replace(/\.[^.]+$/, `.${encodeURIComponent(held.resource)}`);
    await stage.rejectsWith(bob.attach(other), "HANDLE_SPENT", "attach() of a lease that is held");
    const digit = handle.replace(/[0-9a-f](?=\.[^.]+$)/, (last) => (last === "0" ? "1" : "0"));
    await stage.rejectsWith(bob.attach(digit), "HANDLE_SPENT", "attach() with another pass");
    held.assertHeld();
    await stage.refused(bob, "not detached", "after its attachment was refused");
    (await attach(stage, bob, handle)).assertHeld();
  },
};
