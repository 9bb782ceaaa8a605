import type { AcquireOptions, Lease, Leases } from "../../lease/types.js";
import { check, type Stage } from "./stage.js";

export const sharedLeaseCases = {
  "readers hold beside each other, a writer alone, and tokens rise from one to the other": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const wait = 5 * stage.takeoverMs(alice);
    const take = (leases: Leases, mode: AcquireOptions["mode"], what: string) =>
      stage.until(leases.acquire(stage.name("shared/~rw"), { ttl: stage.ttlMs, mode, wait }), what, wait);
    const refused = async (leases: Leases, mode: AcquireOptions["mode"], what: string) => {
      const options = { ttl: stage.ttlMs, mode };
      const lease = await stage.until(leases.tryAcquire(stage.name("shared/~rw"), options), what);
      check(lease === undefined, `${what} was granted`);
    };
    const one = await take(alice, "shared", "the first reader");
    const two = await take(bob, "shared", "a reader beside another");
    check(two.token > one.token, `the tokens of readers went from ${one.token} to ${two.token}`);
    for (const { resource } of [one, two])
      check(resource === stage.name("shared/~rw"), `a reader's lease is on ${resource}`);
    await refused(alice, "exclusive", "a writer beside readers");
    one.assertHeld();
    two.assertHeld();
    await stage.until(Promise.all([one.release(), two.release()]), "release");
    const writer = await take(bob, "exclusive", "a writer after readers");
    check(writer.token > two.token, `the token went from a reader's ${two.token} to ${writer.token}`);
    await refused(alice, "shared", "a reader beside a writer");
    await refused(alice, "exclusive", "a writer beside a writer");
    await stage.refused(alice, "shared/~rw", "beside a writer");
    await stage.until(writer.release(), "release");
    const three = await take(alice, "shared", "a reader after a writer");
    check(three.token > writer.token, `the token went from a writer's ${writer.token} to ${three.token}`);
  },

  "a writer waits for the present readers, and no reader passes it": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const wait = 5 * stage.takeoverMs(alice);
    const acquire = (leases: Leases, mode: AcquireOptions["mode"], autoRenew = true) =>
      leases.acquire(stage.name("turns/~rw"), { ttl: stage.ttlMs, mode, wait, autoRenew });
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
    check(crashed.remaining() === 0, "a writer holds beside a reader");
    check(seen.join() === "writer", "a reader passed a waiting writer");
    await stage.until(writer.release(), "release");
    (await stage.until(reading, "a reader that waits for a writer", wait)).assertHeld();
  },

  "a call without a mode is a writer where there may be readers, whatever call it is": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const name = stage.name("plain/~rw");
    const wait = 5 * stage.takeoverMs(alice);
    const ttl = stage.ttlMs;
    const reader = await stage.until(bob.acquire(name, { mode: "shared", ttl, wait }), "a reader", wait);
    for (const leases of [alice, bob]) {
      const tried = await stage.until(leases.tryAcquire(name, { ttl }), "tryAcquire beside a reader");
      check(tried === undefined, "tryAcquire got the name beside a reader");
      const calls = {
        acquire: () => leases.acquire(name, { ttl, wait: 0 }),
        acquireAll: () => leases.acquireAll([stage.name("plain"), name], { ttl, wait: 0 }),
        using: () => leases.using(name, { ttl, wait: 0 }, () => undefined),
      };
      for (const [call, make] of Object.entries(calls))
        await stage.rejectsWith(make(), "LEASE_HELD", `${call} beside a reader`);
    }
    const stop = new AbortController();
    const led: Lease[] = [];
    const leading = alice.lead(name, async (lease) => void led.push(lease), { ttl, signal: stop.signal });
    await stage.pass(2 * ttl);
    check(led.length === 0, "a leader holds beside a reader");
    reader.assertHeld();
    stop.abort();
    await stage.until(leading, "the end of a campaign");
    await stage.until(reader.release(), "release");
    const writer = await stage.until(alice.acquire(name, { ttl, wait }), "a call without a mode", wait);
    check(writer.token > reader.token, `the token went from a reader's ${reader.token} to ${writer.token}`);
    for (const leases of [alice, bob]) {
      const beside = leases.tryAcquire(name, { mode: "shared", ttl });
      check((await stage.until(beside, "a reader beside it")) === undefined, "a reader holds beside it");
    }
    if (!alice.guarantees.attach) return;
    const { handle } = await stage.until(writer.detach(), "detach");
    const late = await stage.until(
      bob.tryAcquire(name, { mode: "shared", ttl }),
      "a reader of a detached name",
    );
    check(late === undefined, "a reader holds beside a writer's detached lease");
    const attached = await stage.until(bob.attach(handle!, { ttl }), "attach");
    const beside = await stage.until(alice.tryAcquire(name, { mode: "shared", ttl }), "a reader");
    check(beside === undefined && attached.remaining() > 0, "a reader holds beside an attached lease");
  },

  "a reader and a call without a mode that wait for a writer never hold beside each other": async (
    stage: Stage,
  ) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const wait = 5 * stage.takeoverMs(alice);
    for (const [number, other] of [alice, bob].entries()) {
      const name = stage.name(`queue${number}/~rw`);
      const options = { ttl: stage.ttlMs, wait };
      const writer = await stage.until(alice.acquire(name, options), "a writer", wait);
      const held: Lease[] = [];
      const waits = [alice.acquire(name, { ...options, mode: "shared" }), other.acquire(name, options)];
      for (const call of waits) call.then((lease) => held.push(lease)).catch(() => undefined);
      await stage.pass(stage.ttlMs / 4);
      await stage.until(writer.release(), "release");
      const first = await stage.until(Promise.race(waits), "one of the waiters", wait);
      await stage.pass(stage.ttlMs);
      check(held.length === 1, "a reader and a call without a mode hold beside each other");
      first.assertHeld();
      await stage.until(first.release(), "release");
      await stage.until(Promise.all(waits), "the other", wait);
    }
  },

  "a writer's maxHold and ttl begin when the readers have gone": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    const wait = 5 * stage.takeoverMs(alice);
    const ttl = stage.ttlMs;
    for (const terms of [{ maxHold: ttl / 2 }, { autoRenew: false }]) {
      const name = stage.name(`terms/${Object.keys(terms).join()}/~rw`);
      const reader = await stage.until(bob.acquire(name, { mode: "shared", ttl, wait }), "a reader", wait);
      const writing = alice.acquire(name, { ttl, wait, ...terms });
      writing.catch(() => undefined);
      await stage.pass(3 * ttl);
      reader.assertHeld();
      await stage.until(reader.release(), "release");
      const writer = await stage.until(writing, `a writer with ${JSON.stringify(terms)}`, wait);
      const leftMs = writer.remaining();
      check(
        leftMs > ttl / 4,
        `when the readers had gone, ${leftMs} ms were left of ${JSON.stringify(terms)}`,
      );
      await stage.pass(ttl + ttl / 10);
      check(writer.remaining() === 0, `a writer outlives ${JSON.stringify(terms)}`);
    }
  },

  "names with readers have a suffix, and no other name takes a mode": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const bad = [
      { mode: "read" },
      { mode: 1 },
      { mode: "shared", limit: 2 },
      { limit: 2 },
    ] as unknown as AcquireOptions[];
    for (const options of bad) {
      const call = alice.acquire(stage.name("modes/~rw"), options);
      await stage.rejectsWith(call, "INVALID_CONFIG", `acquire with ${JSON.stringify(options)}`);
    }
    for (const mode of ["shared", "exclusive"] as const) {
      for (const name of [stage.name("modes"), stage.name("modes/~rw/x"), stage.name("modes~rw")]) {
        await stage.rejectsWith(alice.acquire(name, { mode }), "INVALID_NAME", `a ${mode} lease of ${name}`);
        await stage.rejectsWith(
          alice.tryAcquire(name, { mode }),
          "INVALID_NAME",
          `a try (${mode}) of ${name}`,
        );
      }
    }
    const all = alice.acquireAll([stage.name("modes/~rw")], { mode: "shared" } as AcquireOptions);
    await stage.rejectsWith(all, "INVALID_CONFIG", "acquireAll of a shared lease");
  },
};
