import type { Change, Leases } from "../../lease/types.js";
import { check, codeOf, describe, type Stage, thrown } from "./stage.js";

/** A ground without watches refuses them with this code; nothing more is required of it. */
function hasNoWatches(leases: Leases): boolean {
  return codeOf(thrown(() => void leases.watch("").return?.())) === "UNSUPPORTED";
}

/** Reads changes up to the expected one; fails if a token decreases on the way. */
async function seen(
  stage: Stage,
  watch: AsyncIterator<Change, undefined>,
  tokens: Map<string, bigint>,
  isIt: (change: Change) => boolean,
  what: string,
): Promise<Change> {
  for (;;) {
    const { done, value } = await stage.until(watch.next(), `a watch that should report ${what}`);
    check(done !== true && value !== undefined, `a watch ended before it reported ${what}`);
    const { resource, token } = value;
    check(token !== undefined, `a watch reported ${resource} without a token`);
    const last = tokens.get(resource);
    check(last === undefined || token >= last, `a watch reported token ${token} after ${last}`);
    tokens.set(resource, token);
    if (isIt(value)) return value;
  }
}

/** Reads up to the expected change; fails if another resource is reported. */
async function seenLeading(
  stage: Stage,
  leader: AsyncIterator<Change, undefined>,
  isIt: (change: Change) => boolean,
  what: string,
): Promise<Change> {
  for (;;) {
    const { value } = await stage.until(leader.next(), `an observation that should report ${what}`);
    check(value !== undefined, `an observation ended before it reported ${what}`);
    check(value.resource === stage.name("leader"), `an observation reported ${value.resource}`);
    if (isIt(value)) return value;
  }
}

export const watchCases = {
  "watch() begins with the held resources, and reports each acquisition, release and expiry": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (hasNoWatches(alice)) return;
    const first = await stage.take(alice, "watch/a");
    await stage.take(alice, "other");
    const tokens = new Map<string, bigint>();
    const watch = bob.watch(stage.name("watch/"));
    const expected = (name: string, state: Change["state"], token: bigint) => (change: Change) =>
      change.resource === stage.name(name) && change.state === state && change.token === token;
    const held = await seen(
      stage,
      watch,
      tokens,
      expected("watch/a", "held", first.token),
      "a held resource",
    );
    check(held.holder === alice.self, `the watch names ${held.holder} as holder, not ${alice.self}`);
    await stage.until(first.release(), "release");
    await seen(stage, watch, tokens, expected("watch/a", "free", first.token), "a release");
    const second = await stage.takeSoon(bob, "watch/a", "the acquisition after a release");
    await seen(stage, watch, tokens, expected("watch/a", "held", second.token), "an acquisition");
    const brief = await stage.take(alice, "watch/b", { autoRenew: false });
    await seen(stage, watch, tokens, expected("watch/b", "held", brief.token), "a second resource");
    await seen(stage, watch, tokens, expected("watch/b", "free", brief.token), "an expiry");
    check(!tokens.has(stage.name("other")), "a watch reported a resource that is not below its prefix");
    await watch.return?.();
  },

  "leader() reports the leader or that there is none, and each change": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (hasNoWatches(alice)) return;
    const leader = bob.leader(stage.name("leader"));
    const next = (isIt: (change: Change) => boolean, what: string) => seenLeading(stage, leader, isIt, what);
    await next(({ state }) => state === "free", "that nobody leads");
    await stage.take(alice, "leader/other");
    const lease = await stage.take(alice, "leader");
    const held = await next(({ token }) => token === lease.token, "the first leader");
    check(held.holder === alice.self, `the reported leader is ${held.holder}, not ${alice.self}`);
    check(leader.current?.token === lease.token, "the reported change is not the current one");
    await stage.until(lease.release(), "release");
    await next(({ state }) => state === "free", "that nobody leads any more");
    await leader.return?.();
    const ended = await stage.until(leader.next(), "an observation that was ended", stage.ttlMs / 2);
    check(ended.done === true, "an observation that was ended continues");
  },

  "a watch ends by its signal, and with its participant": async (stage: Stage) => {
    const alice = await stage.open("alice");
    if (hasNoWatches(alice)) return;
    const controller = new AbortController();
    const bySignal = alice.watch(stage.name(""), { signal: controller.signal }).next();
    controller.abort();
    const ended = await stage.until(bySignal, "a watch whose signal has aborted", stage.ttlMs / 2);
    check(
      ended.done === true,
      `a watch whose signal has aborted reported ${JSON.stringify(ended.value?.resource)}`,
    );
    const byClose = alice.watch(stage.name("")).next();
    await stage.until(alice.close(), "close()");
    const closed = await stage.until(byClose, "a watch of a participant that was closed", stage.ttlMs / 2);
    check(closed.done === true, "a watch of a participant that was closed continues");
  },

  "requestRelease() notifies the holder, and ends no lease": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (hasNoWatches(alice)) return;
    const nobody = await stage.until(
      bob.requestRelease(stage.name("ask")),
      "requestRelease() of a free resource",
    );
    check(!nobody.done, "a request to release a free resource is reported as done");
    const lease = await stage.take(alice, "ask");
    const asked = await stage.eventually(
      () => bob.requestRelease(stage.name("ask")),
      ({ done }) => done,
      "a request that reaches the holder",
      2 * stage.ttlMs,
    );
    check(
      asked.holder === alice.self,
      `the request is reported as sent to ${asked.holder}, not ${alice.self}`,
    );
    const isNotified = async () => lease.releaseRequested.aborted;
    await stage.eventually(isNotified, (done) => done, "the notification of the holder", stage.ttlMs / 2);
    check(
      codeOf(lease.releaseRequested.reason) === "RELEASE_REQUESTED",
      "the reason of the request has another code",
    );
    await stage.pass(2 * stage.ttlMs);
    check(lease.remaining() > 0, "a holder that was asked to release has lost its lease");
    await stage.refused(bob, "ask", "after its holder was asked to release it");
  },

  "break() lets a lease expire, and no sooner": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (hasNoWatches(alice)) return;
    const lease = await stage.take(alice, "break");
    const { done, token } = await stage.eventually(
      () => bob.break(stage.name("break")),
      (answer) => answer.done,
      "breaking a lease",
      2 * stage.ttlMs,
    );
    check(done && token === lease.token, `the reported token of the broken lease is ${token}`);
    const next = stage.wait(bob, "break");
    const endMs = lease.remaining();
    check(endMs > 0, "a lease was lost by being broken");
    let isPassedOn = false;
    void next.then(
      () => (isPassedOn = true),
      () => undefined,
    );
    for (let passedMs = 0; lease.remaining() > 0; passedMs += stage.ttlMs / 50) {
      check(!isPassedOn, "another got the resource while the broken lease was held");
      check(passedMs <= 3 * stage.ttlMs, "a broken lease is renewed");
      await stage.pass(stage.ttlMs / 50);
    }
    const loss = thrown(() => lease.assertHeld());
    const reason = loss instanceof Error && "reason" in loss ? loss.reason : undefined;
    check(
      reason === "broken",
      `the loss of a broken lease has the reason ${String(reason)} (${describe(loss)})`,
    );
    const taken = await stage.until(next, "the acquisition after a lease was broken", stage.takeoverMs(bob));
    check(taken.token > lease.token, `the token went from ${lease.token} to ${taken.token}`);
  },

  "explain() reports the holder of a resource, and that it is free": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (hasNoWatches(alice)) return;
    const ask = () => bob.explain(stage.name("why"));
    const free = await stage.eventually(
      ask,
      ({ state }) => state === "free",
      "the explanation of a free resource",
      2 * stage.ttlMs,
    );
    check(free.quorum && !free.broken && free.reasons.length > 0, "a free resource is not explained");
    const lease = await stage.take(alice, "why");
    const isHeld = ({ state }: { state: string }) => state === "held";
    const held = await stage.eventually(ask, isHeld, "the explanation of a held resource", 2 * stage.ttlMs);
    check(held.holder === alice.self && held.token === lease.token, "the explanation names another holder");
    check(
      held.reasons.join().includes(alice.self),
      `the reasons do not name the holder: ${held.reasons.join()}`,
    );
  },
};
