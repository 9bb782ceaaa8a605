import { expect, test } from "vitest";
import { LeaseholdError } from "../lease/errors.js";
import type { Store, StoreAnswer } from "../delta/store.js";
import { ObservedStore } from "../stores/observed-store.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import { Registry } from "./registry.js";
import { observeStores } from "./store-metrics.js";
import { textOf } from "./text.js";

const traits: Store["traits"] = {
  name: "s1",
  kind: "atomic",
  durable: true,
  bytesMax: 100,
  pollMs: 10,
  delayMs: 10,
};
const id = "marker";

/** A store that gives these answers one after the other, and then none. */
function storeOf(...answers: StoreAnswer[]): Store {
  return new ObservedStore({
    traits,
    perform: () => Promise.resolve(answers.shift() ?? new Promise<StoreAnswer>(() => undefined)),
    close: () => Promise.resolve(),
  });
}

test("operations on stores count by their outcome, and those without an answer are pending", async () => {
  const registry = new Registry(new VirtualWorld().clock);
  const stop = observeStores(registry);
  const error = new LeaseholdError("STORE_UNAVAILABLE", "gone");
  const store = storeOf(
    { kind: "cells", id, cells: [] },
    { kind: "conflict", id, cells: [] },
    { kind: "failed", error },
  );
  const replace = { op: "replace", register: "r", id, expected: undefined, next: new Uint8Array() } as const;
  await store.perform({ op: "read", register: "r" });
  await store.perform(replace);
  expect(await store.perform(replace)).toMatchObject({ kind: "failed" });
  void store.perform({ op: "list", prefix: "", registersMax: 1 });
  stop();
  await storeOf({ kind: "cells", id, cells: [] }).perform({ op: "read", register: "r" });
  const lines = textOf(registry, "prometheus").split("\n");
  expect(lines.filter((line) => /_count|pending{/.test(line))).toEqual([
    'leasehold_store_operation_duration_seconds_count{store="s1",operation="read",outcome="ok"} 1',
    'leasehold_store_operation_duration_seconds_count{store="s1",operation="replace",outcome="conflict"} 1',
    'leasehold_store_operation_duration_seconds_count{store="s1",operation="replace",outcome="store_unavailable"} 1',
    'leasehold_store_operations_pending{store="s1"} 1',
  ]);
});
