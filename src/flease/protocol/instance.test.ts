import * as fc from "fast-check";
import { expect, test } from "vitest";
import { cellOf } from "./quorum.js";
import { Operation, Phase, Instance, InstanceTable } from "./instance.js";
import { StateHash } from "./state-hash.js";

const cell = cellOf([0, 1, 2]);

test("an instance is found by its handle and by its resource, until it is given back", () => {
  const table = new InstanceTable();
  const instance = table.take("r", cell);
  expect([table.at(instance.index), table.of("r"), table.size]).toEqual([instance, instance, 1]);
  table.give(instance);
  expect([table.of("r"), table.size]).toEqual([undefined, 0]);
});

test("an instance given back is clean, and used again", () => {
  const table = new InstanceTable();
  const instance = table.take("r", cell);
  Object.assign(instance, {
    number: 7,
    holding: true,
    renewable: true,
    operation: Operation.renew,
    phase: Phase.writing,
  });
  instance.pastBallots.push({ number: 1, sequence: 1, until: 1 });
  table.give(instance);
  const again = table.take("s", cell);
  expect(again).toBe(instance);
  expect(again).toMatchObject({
    resource: "s",
    number: 0,
    holding: false,
    renewable: false,
    operation: Operation.none,
    phase: Phase.idle,
    pastBallots: [],
  });
});

test("handles are those of living instances, whatever is taken and given, retired and cloned", () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ take: fc.constant(true), which: fc.nat(9) }) },
    { weight: 5, arbitrary: fc.record({ take: fc.constant(false), which: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.constant("retire" as const) },
    { weight: 1, arbitrary: fc.constant("clone" as const) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let table = new InstanceTable();
      const living = new Map<string, number>();
      let retiredBelow = 0;
      let highest = -1;
      let fresh = true;
      for (const each of steps) {
        if (each === "retire") {
          table.retire();
          retiredBelow = highest + 1;
        } else if (each === "clone") {
          table = table.clone();
        } else if (each.take && !living.has(`r${each.which}`)) {
          const instance = table.take(`r${each.which}`, cell);
          fresh &&= instance.index >= retiredBelow && ![...living.values()].includes(instance.index);
          living.set(instance.resource, instance.index);
          highest = Math.max(highest, instance.index);
        } else if (!each.take && living.delete(`r${each.which}`)) {
          table.give(table.of(`r${each.which}`)!);
        }
        expect(fresh).toBe(true);
        expect(table.size).toBe(living.size);
        for (const [resource, index] of living) expect(table.at(index)).toBe(table.of(resource));
      }
    }),
  );
});

test("a clone of a table has instances of its own", () => {
  const table = new InstanceTable();
  const instance = table.take("r", cell);
  instance.pastBallots.push({ number: 1, sequence: 1, until: 1 });
  const copy = table.clone();
  const copied = copy.of("r")!;
  expect(copied).not.toBe(instance);
  copied.number = 9;
  copied.pastBallots.push({ number: 2, sequence: 1, until: 1 });
  expect([instance.number, instance.pastBallots.length]).toEqual([0, 1]);
  copy.give(copied);
  expect(table.of("r")).toBe(instance);
});

/** Fields of an instance that say where it is in the heap or table, or are hashed with something else. */
const uncounted = new Set(["index", "cell", "heapIndex", "heapSequence", "dueMs", "pastBallots"]);

test("every field of an instance counts in its hash", () => {
  const digestOf = (change: (instance: Instance) => void) => {
    const instance = new Instance(0, cell);
    change(instance);
    const hash = new StateHash();
    instance.hashInto(hash);
    return hash.digest();
  };
  const plain = digestOf(() => undefined);
  const changed: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(new Instance(0, cell)) as [string, unknown][]) {
    if (uncounted.has(name)) continue;
    changed[name] = typeof value === "boolean" ? !value : typeof value === "string" ? "x" : 1;
  }
  expect(Object.keys(changed).length).toBeGreaterThan(20);
  for (const [name, value] of Object.entries(changed)) {
    const digest = digestOf((instance) => Object.assign(instance, { [name]: value }));
    expect([name, digest === plain]).toEqual([name, false]);
  }
  const due = digestOf((instance) => Object.assign(instance, { heapIndex: 0, dueMs: 5 }));
  const past = digestOf((instance) => instance.pastBallots.push({ number: 1, sequence: 1, until: 1 }));
  expect(new Set([plain, due, past]).size).toBe(3);
});
