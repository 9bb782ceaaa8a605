import type { AcquireOptions, Lease, Leases } from "../../lease/types.js";
import { check, type Stage } from "./stage.js";

export const sharingCases = {
  "readers hold beside each other, a writer alone, and tokens rise from one to the other": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const wait = 5 * stage.takeoverMs(alice);
    const take = (leases: Leases, mode: AcquireOptions["mode"], what: string) =>
      stage.until(leases.acquire(stage.name("shared"), { ttl: stage.ttlMs, mode, wait }), what, wait);
    const refused = async (leases: Leases, mode: AcquireOptions["mode"], what: string) => {
      const options = { ttl: stage.ttlMs, mode };
      const lease = await stage.until(leases.tryAcquire(stage.name("shared"), options), what);
      check(lease === undefined, `${what} was granted`);
    };
    const one = await take(alice, "shared", "the first reader");
    const two = await take(bob, "shared", "a reader beside another");
    check(two.token > one.token, `the tokens of readers went from ${one.token} to ${two.token}`);
    for (const { resource } of [one, two])
      check(resource === stage.name("shared"), `a reader's lease is on ${resource}`);
    await refused(alice, "exclusive", "a writer beside readers");
    one.assertHeld();
    two.assertHeld();
    await stage.until(Promise.all([one.release(), two.release()]), "release");
    const writer = await take(bob, "exclusive", "a writer after readers");
    check(writer.token > two.token, `the token went from a reader's ${two.token} to ${writer.token}`);
    await refused(alice, "shared", "a reader beside a writer");
    await refused(alice, "exclusive", "a writer beside a writer");
    await stage.refused(alice, "shared", "beside a writer");
    await stage.until(writer.release(), "release");
    const three = await take(alice, "shared", "a reader after a writer");
    check(three.token > writer.token, `the token went from a writer's ${writer.token} to ${three.token}`);
  },

  "a writer waits for the readers that are in, and no reader goes past it": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const wait = 5 * stage.takeoverMs(alice);
    const acquire = (leases: Leases, mode: AcquireOptions["mode"], autoRenew = true) =>
      leases.acquire(stage.name("turns"), { ttl: stage.ttlMs, mode, wait, autoRenew });
    const crashed: Lease = await stage.until(acquire(alice, "shared", false), "a reader", wait);
    const reader = await stage.until(acquire(alice, "shared"), "another reader", wait);
    const seen: string[] = [];
    const came = (who: string) => (lease: Lease) => {
      seen.push(who);
      return lease;
    };
    const writing = acquire(bob, "exclusive").then(came("writer"));
    writing.catch(() => undefined);
    await stage.pass(stage.ttlMs / 2);
    const reading = acquire(alice, "shared").then(came("reader"));
    reading.catch(() => undefined);
    await stage.pass(2 * stage.ttlMs);
    check(seen.length === 0, `the ${seen[0]} came in before a reader had gone`);
    reader.assertHeld();
    await stage.until(reader.release(), "release");
    const writer = await stage.until(writing, "a writer that waits for readers", wait);
    check(crashed.remaining() === 0, "a writer came in beside a reader");
    check(seen.join() === "writer", "a reader went past a writer that waited");
    await stage.until(writer.release(), "release");
    (await stage.until(reading, "a reader that waits for a writer", wait)).assertHeld();
  },

  "a mode is shared or exclusive, and has no limit": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const bad = [{ mode: "read" }, { mode: 1 }, { mode: "shared", limit: 2 }] as unknown as AcquireOptions[];
    for (const options of bad) {
      const call = alice.acquire(stage.name("modes"), options);
      await stage.rejectsWith(call, "INVALID_CONFIG", `acquire with ${JSON.stringify(options)}`);
    }
    const all = alice.acquireAll([stage.name("modes")], { mode: "shared" } as AcquireOptions);
    await stage.rejectsWith(all, "INVALID_CONFIG", "acquireAll of a shared lease");
  },
};
