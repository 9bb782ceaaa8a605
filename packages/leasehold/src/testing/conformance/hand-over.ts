import { check, codeOf, type Stage } from "./stage.js";

export const handOverCases = {
  "a lease is handed over to a named waiter; otherwise the call is refused and the lease stays": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const lease = await stage.take(alice, "handed over");
    const handOver = () => alice.handOver(lease.resource, bob.self, { timeout: stage.ttlMs });
    const { handOver: isPossible } = alice.guarantees;
    await stage.rejectsWith(handOver(), isPossible ? "NOT_WAITING" : "UNSUPPORTED", "handOver() too early");
    check(!lease.releaseRequested.aborted, "the holder was asked by a refused hand-over");
    lease.assertHeld();
    if (!isPossible) return stage.until(lease.release(), "release()");
    const waits = stage.wait(bob, "handed over");
    const ask = () => handOver().then(({ done }) => done, codeOf);
    await stage.eventually(ask, (done) => done === true, "the hand-over to a waiter", 2 * stage.ttlMs);
    check(lease.releaseRequested.aborted, "the holder was not asked");
    await stage.until(lease.release(), "release()");
    const next = await stage.until(waits, "the acquisition by the named waiter");
    check(next.token > lease.token, `the token went from ${lease.token} to ${next.token}`);
    await stage.until(next.release(), "release()");
  },
};
