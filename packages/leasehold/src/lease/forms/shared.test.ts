import { describe, expect, test } from "vitest";
import { duringFaults, type Fault } from "../../../../../test/planted/switches.js";
import { type Parts, virtualGround } from "../../../../../test/support/virtual-ground.js";
import { MemoryProvider } from "../../testing/memory-provider.js";
import type { MemoryGround } from "../../testing/memory-ground.js";
import { LeaseholdError } from "../errors.js";
import type { AcquireOptions } from "../options.js";
import type { AttemptOutcome, AttemptRequest, Cancellation, Grant } from "../provider.js";

const ttlMs = 2_000;
const name = "s/~rw";

const pause = ({ world }: Parts, ms: number) =>
  new Promise<void>((resolve) => void world.timers.after(ms, resolve));

/** A participant whose attempts for slots, and their releases, are slow. */
class SlowAtSlots extends MemoryProvider {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    super(parts.ground, parts.world, { name: parts.name, ttlMaxMs: ttlMs, process: parts.process });
    this.#parts = parts;
  }

  override async release(grant: Grant): Promise<void> {
    if (grant.resource !== name) await this.slowly(200);
    return super.release(grant);
  }

  slowly(ms: number): Promise<void> {
    return pause(this.#parts, ms);
  }

  override async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    if (request.resource !== name) await pause(this.#parts, 50);
    const outcome = await super.attempt(request, cancellation);
    // A refusal arrives later than a concurrent grant.
    if (outcome.kind === "held" && request.resource !== name) await pause(this.#parts, 10);
    return outcome;
  }
}

/** A reader that is stopped after it got the gate and requested a slot, while a writer arrives. */
async function stoppedOnItsWayIn(): Promise<string> {
  const ground = virtualGround((parts) => new SlowAtSlots(parts));
  const [alice, bob] = [await ground.open("alice"), await ground.open("bob")];
  const reading = alice.tryAcquire(name, { mode: "shared" });
  await ground.pass(10);
  const writing = bob.acquire(name, { mode: "exclusive" });
  await ground.freeze!(alice, 2 * ttlMs);
  const writer = await writing;
  const before = writer.remaining() > 0 ? "the writer is in" : "the writer is not in";
  await ground.pass(200);
  const reader = await reading;
  const after = (reader?.remaining() ?? 0) > 0 ? "the reader is in" : "the reader is not in";
  await writer.release();
  const next = alice.acquire(name, { mode: "exclusive", wait: ttlMs });
  const last = next.then(
    () => "all is free",
    () => "something was left",
  );
  await ground.pass(2 * ttlMs);
  const rest = await last;
  await ground.close();
  return `${before}, ${after}, ${rest}`;
}

describe("a reader that is stopped between gate and slot", () => {
  test("does not hold when it resumes, if a writer may have arrived, and leaves nothing behind", async () => {
    expect(await stoppedOnItsWayIn()).toBe("the writer is in, the reader is not in, all is free");
  });

  test.each<[Fault, string]>([
    ["readerTrustsItsGate", "the writer is in, the reader is in, something was left"],
    ["lateSlotIsKept", "the writer is in, the reader is not in, something was left"],
  ])("with the mistake %s holds, or leaves something behind", async (fault, then) => {
    expect(await duringFaults({ [fault]: true }, stoppedOnItsWayIn)).toBe(then);
  });
});

/** A participant without permission for the readers' slots. */
class RefusedAtSlots extends MemoryProvider {
  override async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    if (request.resource === name) return super.attempt(request, cancellation);
    return { kind: "failed", error: new LeaseholdError("PERMISSION_DENIED") };
  }
}

const outcomeOf = (asked: Promise<unknown>) =>
  asked.then(
    (lease) => (lease === undefined ? "held" : "granted"),
    (error: LeaseholdError) => error.code,
  );

describe("a reader", () => {
  test("that is refused permanently fails at once, and does not retry", async () => {
    const ground = virtualGround(
      ({ ground: memory, world, name, process }) =>
        new RefusedAtSlots(memory, world, { name, ttlMaxMs: ttlMs, process }),
    );
    const alice = await ground.open("alice");
    let outcome = "waits";
    void outcomeOf(alice.acquire(name, { mode: "shared", wait: Infinity })).then((code) => (outcome = code));
    await ground.pass(500);
    expect(outcome).toBe("PERMISSION_DENIED");
    await ground.close();
  });

  test("whose participant closes while it tries does not report another holder", async () => {
    const ground = virtualGround((parts) => new SlowAtSlots(parts));
    const [alice, bob] = [await ground.open("alice"), await ground.open("bob")];
    const writing = bob.acquire(name, { mode: "exclusive" });
    await ground.pass(1_000);
    await writing;
    const reading = outcomeOf(alice.tryAcquire(name, { mode: "shared" }));
    await ground.pass(50);
    void alice.close();
    await ground.pass(1_000);
    expect(await reading).toBe("CLOSED");
    await ground.close();
  });
});

describe("a writer", () => {
  test("that loses the gate while it waits for readers starts again", async () => {
    let memory: MemoryGround | undefined;
    const ground = virtualGround((parts) => {
      memory = parts.ground;
      return new SlowAtSlots(parts);
    });
    const [alice, bob] = [await ground.open("alice"), await ground.open("bob")];
    const reading = alice.acquire(name, { mode: "shared" });
    await ground.pass(500);
    const reader = await reading;
    const writing = bob.acquire(name, { mode: "exclusive", wait: 10 * ttlMs });
    await ground.pass(500);
    expect(memory!.lose(name)).toBe(true);
    await ground.pass(500);
    void reader.release();
    await ground.pass(500);
    expect((await writing).remaining()).toBeGreaterThan(0);
    await ground.close();
  });

  test("that times out names readers and its own resource, and no slot", async () => {
    const ground = virtualGround((parts) => new SlowAtSlots(parts));
    const [alice, bob] = [await ground.open("alice"), await ground.open("bob")];
    const reading = alice.acquire(name, { mode: "shared" });
    await ground.pass(500);
    await reading;
    const writing = bob
      .acquire(name, { mode: "exclusive", wait: ttlMs })
      .catch((error: Error) => error.message);
    await ground.pass(2 * ttlMs);
    expect(await writing).toBe('waited 2s, and readers still have "s/~rw"');
    await ground.close();
  });

  test("that is refused leaves all other slots free for the next readers", async () => {
    const ground = virtualGround((parts) => new SlowAtSlots(parts));
    const [alice, bob, carol] = [
      await ground.open("alice"),
      await ground.open("bob"),
      await ground.open("carol"),
    ];
    const reading = alice.acquire(name, { mode: "shared" });
    await ground.pass(500);
    await reading;
    const writing = bob.tryAcquire(name, { mode: "exclusive" });
    const next = writing.then(() => carol.tryAcquire(name, { mode: "shared" }));
    await ground.pass(500);
    expect([await writing, (await next)?.resource]).toEqual([undefined, name]);
    await ground.close();
  });
});

describe("a release resolves when others can have all that the lease was made of", () => {
  /** Every operation on the gate takes longer than one on a slot. */
  class SlowAtTheGate extends SlowAtSlots {
    override async release(grant: Grant): Promise<void> {
      if (grant.resource === name) await this.slowly(500);
      return super.release(grant);
    }
  }

  test.each([
    ["a writer's", { mode: "exclusive" }, SlowAtSlots],
    ["a reader's", { mode: "shared" }, SlowAtTheGate],
    ["a writer's with a handle", { mode: "exclusive" }, SlowAtSlots],
  ] as const)("%s", async (whose, options, Participant) => {
    const ground = virtualGround((parts) => new Participant(parts));
    const [alice, bob] = [await ground.open("alice"), await ground.open("bob")];
    const isDetached = whose.endsWith("handle");
    const left = alice
      .acquire(name, options)
      .then(async (lease) => void (await (isDetached ? lease.detach() : lease.release())))
      .then(() => bob.list(name));
    await ground.pass(2_000);
    expect((await left).map(({ resource }) => resource)).toEqual(isDetached ? [name] : []);
    await ground.close();
  });

  test("a counted lease's, whose caller got two slots at once", async () => {
    class SlowAtTheLastSlot extends SlowAtSlots {
      override async release(grant: Grant): Promise<void> {
        if (grant.resource.endsWith("~2")) await this.slowly(500);
        return super.release(grant);
      }

      override async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
        const outcome = await super.attempt(request, cancellation);
        if (request.resource.endsWith("~2")) await this.slowly(20);
        return outcome;
      }
    }
    const ground = virtualGround((parts) => new SlowAtTheLastSlot(parts));
    const [alice, bob] = [await ground.open("alice"), await ground.open("bob")];
    const pool = "pool";
    const taking = Promise.all([1, 2, 3].map(() => bob.acquire(pool, { limit: 3 })));
    await ground.pass(1_000);
    const taken = await taking;
    const left = alice
      .acquire(pool, { limit: 3 })
      .then((lease) => lease.release())
      .then(() => bob.list(pool));
    await ground.pass(ttlMs);
    // All three become free at the same time.
    void taken.find(({ slot }) => slot === 2)!.release();
    await ground.pass(500);
    for (const lease of taken) void lease.release();
    await ground.pass(2_000);
    expect(await left).toEqual([]);
    await ground.close();
  });
});

test("a reader that was asked to stop and still works keeps out calls without a mode", async () => {
  const ground = virtualGround((parts) => new SlowAtSlots(parts));
  const alice = await ground.open("alice");
  const stop = new AbortController();
  let finish: () => void = () => undefined;
  const work = () => new Promise<void>((resolve) => (finish = resolve));
  const reading = alice.using(name, { mode: "shared", signal: stop.signal }, work);
  await ground.pass(500);
  stop.abort();
  const beside = outcomeOf(alice.tryAcquire(name));
  await ground.pass(500);
  expect(await beside).toBe("held");
  finish();
  await ground.pass(500);
  await reading;
  const after = outcomeOf(alice.tryAcquire(name));
  await ground.pass(500);
  expect(await after).toBe("granted");
  await ground.close();
});

/** The outcome for a writer with these terms while a reader stays for five times the ttl. */
async function writerBesideALongReader(
  terms: Pick<AcquireOptions, "autoRenew" | "maxHold">,
): Promise<string> {
  const ground = virtualGround((parts) => new SlowAtSlots(parts));
  const [alice, bob] = [await ground.open("alice"), await ground.open("bob")];
  const reading = alice.acquire(name, { mode: "shared" });
  await ground.pass(500);
  const reader = await reading;
  const writing = bob.acquire(name, { wait: 60 * ttlMs, ...terms });
  await ground.pass(5 * ttlMs);
  let overtaken = "nobody";
  const next = alice.acquire(name, { mode: "shared", wait: 60 * ttlMs });
  void next.then(() => (overtaken = "a reader"));
  await ground.pass(5 * ttlMs);
  void reader.release();
  await ground.pass(600);
  const writer = await Promise.race([writing, Promise.resolve(undefined)]);
  const first = `${overtaken} before it, then it has ${Math.round((writer?.remaining() ?? 0) / 500) / 2} s`;
  await ground.pass(3 * ttlMs);
  const later = writer?.remaining();
  await ground.close();
  return `${first}, and later ${later}`;
}

describe("a writer's terms", () => {
  test.each([{ maxHold: 1_500 }, { autoRenew: false }])(
    "%j begin when the readers have gone",
    async (terms) => {
      expect(await writerBesideALongReader(terms)).toMatch(
        /^nobody before it, then it has [12](\.5)? s, and later 0$/,
      );
    },
  );

  test.each([{ maxHold: 1_500 }, { autoRenew: false }])(
    "%j would let it wait for ever if they began with its gate",
    async (terms) => {
      const found = await duringFaults({ writerWaitsByItsTerms: true }, () => writerBesideALongReader(terms));
      expect(found).toMatch(/it has 0 s/);
    },
  );
});
