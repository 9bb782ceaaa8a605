import { describe, expect, test } from "vitest";
import { LeaseholdError } from "../lease/errors.js";
import type { Cancellation } from "../lease/provider.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import { Driver } from "./driver.js";
import { type Ask, lookAtClocks, type Protocol, type Resumption } from "./effects.js";
import { underWayMax } from "./lane.js";
import { MemoryMedium, MemoryStore } from "./memory/memory-store.js";
import type { Store, StoreAnswer, StoreCaller, StoreRequest } from "./store.js";

function stage(size = 3) {
  const world = new VirtualWorld();
  const { timers, random } = world;
  const media = Array.from(
    { length: size },
    (_, index) => new MemoryMedium({ timers, random, name: `${index}` }),
  );
  const driver = new Driver(
    media.map((medium) => new MemoryStore(medium, "w")),
    world,
  );
  return { world, media, driver };
}

const read: StoreRequest = { op: "read", register: "r" };

function* asking(ask: Partial<Ask>): Protocol<Resumption> {
  return yield { kind: "ask", requests: [read, read, read], enough: () => false, timeoutMs: 1_000, ...ask };
}

const kinds = ({ answers }: Resumption) => answers.map((answer) => answer?.kind);
const answered = (count: number) => (answers: readonly (StoreAnswer | undefined)[]) =>
  answers.filter(Boolean).length >= count;
const cancellation = (): Cancellation & { cancelled: boolean } => ({ cancelled: false, onCancel: undefined });

describe("a question", () => {
  test("ends with enough answers, and reports the late one", async () => {
    const { world, media, driver } = stage();
    media[2]!.latencyMs = { request: 10, answer: 10 };
    const late: unknown[] = [];
    const run = driver.run(
      asking({
        enough: answered(2),
        late: (store, { kind }, { monotonicMs }) => late.push([store, kind, monotonicMs]),
      }),
    );
    await world.settle();
    expect(kinds(await run)).toEqual(["cells", "cells", undefined]);
    await world.advance(100);
    expect(late).toEqual([[2, "cells", 20]]);
    expect(world.pendingTimers).toBe(0);
  });

  test("ends when all have answered, or at its timeout", async () => {
    const { world, media, driver } = stage();
    expect(kinds(await driver.run(asking({})))).toEqual(["cells", "cells", "cells"]);
    media[1]!.stall("requests");
    const run = driver.run(asking({ timeoutMs: 50 }));
    await world.advance(49);
    await expect(Promise.race([run, "waits"])).resolves.toBe("waits");
    await world.advance(1);
    const end = await run;
    expect(kinds(end)).toEqual(["cells", undefined, "cells"]);
    expect(end.now.monotonicMs).toBe(50);
  });

  test("asks only the stores that it names", async () => {
    const { driver, media } = stage();
    expect(kinds(await driver.run(asking({ requests: [undefined, read, undefined] })))).toEqual([
      undefined,
      "cells",
      undefined,
    ]);
    expect(media.map(({ performed }) => performed.read)).toEqual([0, 1, 0]);
  });

  test("that no store can answer ends, without recursion", async () => {
    const { driver } = stage();
    function* stubborn(): Protocol<number> {
      for (let times = 0; times < 20_000; times += 1) yield { ...ask, requests: [read, read, read] };
      return 1;
    }
    const ask: Ask = { kind: "ask", requests: [], enough: () => false, timeoutMs: 10 };
    const error = new LeaseholdError("STORE_UNAVAILABLE");
    const filter = {
      refusal: () => ({ kind: "failed", error }) as const,
      admit: (_: number, a: StoreAnswer) => a,
    };
    expect(await driver.run(stubborn(), { filter })).toBe(1);
  });

  test("counts an answer as the filter decides", async () => {
    const { driver } = stage();
    const error = new LeaseholdError("STORE_UNAVAILABLE");
    const run = driver.run(asking({}), {
      filter: {
        refusal: (store) => (store === 0 ? { kind: "failed", error } : undefined),
        admit: (store, answer) => (store === 1 ? { kind: "failed", error } : answer),
      },
    });
    expect(kinds(await run)).toEqual(["failed", "failed", "cells"]);
  });
});

describe("a caller that gives up", () => {
  test("ends reads and delays at once", async () => {
    const { world, media, driver } = stage();
    for (const medium of media) medium.stall("requests");
    function* long(): Protocol<boolean[]> {
      const { cancelled: first } = yield* asking({ timeoutMs: 60_000 });
      const { cancelled: second } = yield { kind: "delay", delayMs: 60_000 };
      return [first, second];
    }
    const caller = cancellation();
    const run = driver.run(long(), { cancellation: caller });
    await world.advance(10);
    caller.cancelled = true;
    caller.onCancel?.();
    await world.advance(0);
    expect(await run).toEqual([true, true]);
    expect(caller.onCancel).toBeUndefined();
  });

  test("waits for its writes, which have to be withdrawn", async () => {
    const { world, media, driver } = stage();
    for (const medium of media) medium.latencyMs = { request: 5, answer: 5 };
    const requests = media.map(({ id }) => ({
      op: "replace" as const,
      register: "r",
      id,
      expected: undefined,
      next: new Uint8Array([1]),
    }));
    const caller = cancellation();
    const run = driver.run(asking({ requests }), { cancellation: caller });
    caller.onCancel?.();
    await world.advance(9);
    await expect(Promise.race([run, "waits"])).resolves.toBe("waits");
    await world.advance(1);
    const end = await run;
    expect([kinds(end), end.cancelled]).toEqual([["written", "written", "written"], true]);
  });
});

describe("a store that hangs", () => {
  test(`has at most ${underWayMax} operations in flight, and queued ones are not sent after their timeout`, async () => {
    const { world, media, driver } = stage(1);
    media[0]!.stall("requests");
    const asks = Array.from({ length: underWayMax + 50 }, () =>
      driver.run(asking({ requests: [read], timeoutMs: 10 })),
    );
    await world.advance(10);
    for (const end of await Promise.all(asks)) expect(kinds(end)).toEqual([undefined]);
    media[0]!.resume();
    await world.settle();
    expect(media[0]!.performed.read).toBe(underWayMax);
    expect(kinds(await driver.run(asking({ requests: [read] })))).toEqual(["cells"]);
  });

  test("gets queued operations when there is room", async () => {
    const { world, media, driver } = stage(1);
    media[0]!.latencyMs = { request: 1, answer: 1 };
    const asks = Array.from({ length: 3 * underWayMax }, () => driver.run(asking({ requests: [read] })));
    await world.advance(6);
    for (const end of await Promise.all(asks)) expect(kinds(end)).toEqual(["cells"]);
    expect(world.pendingTimers).toBe(0);
  });
});

describe("a store that supports giving up", () => {
  function hanging() {
    const { world, media } = stage(1);
    const callers: StoreCaller[] = [];
    const store: Store = {
      traits: media[0]!.traits,
      perform: (_request, caller) => {
        callers.push(caller!);
        return new Promise(() => undefined);
      },
      close: () => Promise.resolve(),
    };
    const run = new Driver([store], world).run(asking({ requests: [read], timeoutMs: 10 }));
    return { world, run, caller: callers[0]! };
  }

  test("is asked to at the question's timeout, with one signal", async () => {
    const { world, run, caller } = hanging();
    const { signal } = caller;
    expect([caller.signal === signal, signal.aborted]).toEqual([true, false]);
    await world.advance(10);
    await run;
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  test("is asked to at once when it reads the signal only after that", async () => {
    const { world, run, caller } = hanging();
    await world.advance(10);
    await run;
    expect(caller.signal.aborted).toBe(true);
  });
});

test("an adapter that rejects is a store that fails, not an empty one", async () => {
  const { world, media } = stage(1);
  const store: Store = {
    traits: media[0]!.traits,
    perform: () => Promise.reject(new Error("bug")),
    close: () => Promise.resolve(),
  };
  const end = await new Driver([store], world).run(asking({ requests: [read] }));
  expect(end.answers[0]).toMatchObject({ kind: "failed", error: { code: "STORE_UNAVAILABLE" } });
});

test("a caller gets the error that its algorithm throws", async () => {
  const { driver } = stage();
  function* failing(): Protocol<void> {
    yield lookAtClocks;
    throw new Error("of the algorithm");
  }
  await expect(driver.run(failing())).rejects.toThrow("of the algorithm");
});

test("reading the clocks takes no time, and needs no timer", async () => {
  const { world, driver } = stage();
  await world.advance(7);
  function* looking(): Protocol<number> {
    return (yield lookAtClocks).now.monotonicMs;
  }
  const run = driver.run(looking());
  expect(world.pendingTimers).toBe(0);
  expect(await run).toBe(7);
});

test("closing ends all waits, and nothing is sent any more", async () => {
  const { world, media, driver } = stage();
  for (const medium of media) medium.stall("requests");
  const run = driver.run(asking({ timeoutMs: 60_000 }));
  await driver.close();
  expect((await run).cancelled).toBe(true);
  expect(kinds(await driver.run(asking({})))).toEqual(["failed", "failed", "failed"]);
  await world.advance("1m");
  expect(world.pendingTimers).toBe(0);
});
