import { afterEach, describe, expect, test } from "vitest";
import { watch } from "../../../../test/support/scripted-provider.js";
import { MemoryMedium, MemoryStore } from "../delta/memory/memory-store.js";
import { type ErrorCode, LeaseholdError } from "../lease/errors.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import type { OpenedStore } from "./common/contract.js";
import { LazyStore } from "./lazy-store.js";

const world = new VirtualWorld();
const assumed = { name: "s", kind: "atomic", bytesMax: 100, pollMs: 7, delayMs: 9 } as const;
const opened: LazyStore[] = [];

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

/** A store whose opening fails `failures` times with this error. */
function lateStore(code: ErrorCode, failures: number) {
  const medium = new MemoryMedium({ ...world, name: "real" });
  let tries = 0;
  const store = new LazyStore(assumed, world.timers, async () => {
    tries += 1;
    if (tries <= failures) throw new LeaseholdError(code, `try ${tries}`);
    return Object.assign(new MemoryStore(medium, "w"), { findings: [] }) as OpenedStore;
  });
  opened.push(store);
  return { store, tries: () => tries };
}

const read = (store: LazyStore) => store.perform({ op: "read", register: "r" });

describe("a store that is unreachable at first", () => {
  test("fails with its reason, is tried again after a pause, and then has its own properties", async () => {
    const { store, tries } = lateStore("STORE_UNAVAILABLE", 1);
    await store.settled();
    expect(store.traits).toMatchObject({ name: "s", kind: "atomic", pollMs: 7, durable: false });
    expect(await read(store)).toMatchObject({ kind: "failed", error: { message: "try 1" } });
    await read(store);
    expect(tries()).toBe(1);
    await world.advance(1_000);
    await read(store);
    await store.settled();
    expect(tries()).toBe(2);
    expect(await read(store)).toMatchObject({ kind: "cells", cells: [] });
    expect(store.traits).toMatchObject({ name: "real", durable: true, pollMs: 5 });
  });

  test.each(["INVALID_URL", "INVALID_CONFIG", "UNSUPPORTED", "STORE_UNFIT"] as const)(
    "is not awaited when its opening fails with %s, which is thrown",
    async (code) => {
      await expect(lateStore(code, 1).store.settled()).rejects.toMatchObject({ code });
    },
  );

  test.each(["STORE_FOREIGN", "STORE_PERMISSION", "STORE_READ_ONLY"] as const)(
    "fails with %s when its opening does",
    async (code) => {
      const { store } = lateStore(code, 1);
      await store.settled();
      expect(await read(store)).toMatchObject({ kind: "failed", error: { code } });
    },
  );

  test("does not block the closing of its farm when it hangs", async () => {
    const medium = new MemoryMedium({ ...world, name: "real" });
    const hanging = { findings: [], close: () => new Promise<void>(() => undefined) };
    const store = new LazyStore(assumed, world.timers, async () =>
      Object.assign(new MemoryStore(medium, "w"), hanging),
    );
    await store.settled();
    const closed = watch(store.close());
    await world.advance(499);
    expect(closed.state).toBe("pending");
    await world.advance(1);
    expect(closed.state).toBe("fulfilled");
  });

  test("that opens after the farm was closed is closed", async () => {
    let isClosed = false;
    let arrive: (store: OpenedStore) => void = () => undefined;
    const store = new LazyStore(assumed, world.timers, () => new Promise((resolve) => (arrive = resolve)));
    await store.close();
    const medium = new MemoryMedium({ ...world, name: "real" });
    arrive(
      Object.assign(new MemoryStore(medium, "w"), {
        findings: [],
        close: async () => void (isClosed = true),
      }) as OpenedStore,
    );
    await store.settled();
    expect(isClosed).toBe(true);
    expect((await read(store)).kind).toBe("failed");
  });
});
