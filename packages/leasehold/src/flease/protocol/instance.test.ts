import * as fc from "fast-check";
import { expect, test } from "vitest";
import { cellOf } from "./quorum.js";
import { Operation, OperationKind, Phase, Instance, InstanceTable } from "./instance.js";
import { StateHash } from "./state-hash.js";

const cell = cellOf([0, 1, 2]);

const numbers = (one: number) => ({
  holdExpiresWallMs: one,
  holdExpiresMonoMs: 2 * one,
  holdNumber: 3 * one,
});

test("an instance is found by its handle and by its resource until it is released", () => {
  const table = new InstanceTable();
  const instance = table.take("r", cell);
  expect([table.at(instance.index), table.of("r"), table.size]).toEqual([instance, instance, 1]);
  table.give(instance);
  expect([table.of("r"), table.size]).toEqual([undefined, 0]);
});

test("the handle of a released instance is reused by another", () => {
  const table = new InstanceTable();
  const instance = table.take("r", cell);
  table.give(instance);
  expect(table.at(instance.index)).toBeUndefined();
  const next = table.take("s", cell);
  expect(next).not.toBe(instance);
  expect([next.index, next.resource, next.holding]).toEqual([instance.index, "s", false]);
});

test("a released instance neither reads nor writes the numbers of the next one with its handle", () => {
  const table = new InstanceTable();
  const former = table.take("r", cell);
  Object.assign(former, { holding: true, ...numbers(1) });
  table.give(former);
  const next = table.take("s", cell);
  expect([next.index, former.holding]).toEqual([former.index, false]);
  expect(next).toMatchObject(numbers(0));
  Object.assign(next, { holding: true, ...numbers(2) });
  expect(former).not.toMatchObject(numbers(2));
  former.letRunOut();
  Object.assign(former, numbers(3));
  expect(next).toMatchObject(numbers(2));
});

test("each instance has its own numbers, even after all earlier ones were released, and in a clone", () => {
  const table = new InstanceTable();
  for (let round = 0; round < 2; round += 1) {
    const all = Array.from({ length: 10_000 }, (_, at) => table.take(`r${at}`, cell));
    for (const [at, instance] of all.entries()) Object.assign(instance, numbers(at));
    const copy = table.clone();
    for (const instance of copy.values()) Object.assign(instance, numbers(-1));
    expect(all.every((instance, at) => instance.holdNumber === 3 * at)).toBe(true);
    for (const instance of all) table.give(instance);
  }
});

test("an operation begins clean, lasts until it is ended, and is used again for another instance", () => {
  const table = new InstanceTable();
  const [instance, other] = [table.take("r", cell), table.take("s", cell)];
  const operation = table.begin(instance, OperationKind.acquire, 500, 1_000);
  Object.assign(operation, {
    phase: Phase.writing,
    number: 7,
    sequence: 2,
    tries: 3,
    waiting: true,
    fullBy: "q",
  });
  expect([instance.awaits(7, 2), instance.awaits(7, 1), instance.awaits(6, 2)]).toEqual([true, false, false]);
  table.end(instance);
  table.end(instance);
  expect(instance.operation.kind).toBe(OperationKind.none);
  expect(table.begin(other, OperationKind.renew, 400, 900)).toBe(operation);
  const clean = { instance: other, phase: Phase.idle, number: 0, tries: 0, waiting: false, fullBy: "" };
  expect(operation).toMatchObject({ ...clean, ttl: 400 });
  expect(table.begin(instance, OperationKind.renew, 400, 900)).not.toBe(operation);
});

test("without an operation, the ballot of the hold is the one whose replies count, and none without a hold", () => {
  const instance = new Instance(0, "r", cell);
  Object.assign(instance, { holding: true, holdNumber: 5, holdSequence: 3 });
  expect([instance.awaits(5, 3), instance.awaits(5, 2), instance.awaits(4, 3)]).toEqual([true, false, false]);
  instance.holding = false;
  expect(instance.awaits(5, 3)).toBe(false);
});

test("an operation between two ballots awaits nothing", () => {
  const table = new InstanceTable();
  const instance = table.take("r", cell);
  table.begin(instance, OperationKind.acquire, 500, 0);
  expect(instance.awaits(0, 0)).toBe(false);
});

test("nothing can be written to an instance without an operation", () => {
  const { operation } = new Instance(0, "r", cell);
  expect(() => (operation.number = 1)).toThrow(TypeError);
});

test("handles in use are those of live instances, whatever is allocated, released, retired and cloned", () => {
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
  table.begin(instance, OperationKind.acquire, 500, 0).number = 7;
  const copy = table.clone();
  const copied = copy.of("r")!;
  expect(copied).not.toBe(instance);
  expect([copied.operation.number, copied.operation.instance]).toEqual([7, copied]);
  copied.operation.number = 9;
  expect(instance.operation.number).toBe(7);
  copy.end(copied);
  copy.give(copied);
  expect(table.of("r")).toBe(instance);
});

/** Fields that hold its place in the heap or table, or that are hashed with something else. */
const uncounted = new Set(["index", "cell", "operation", "pastBallots"]);
const uncountedOfOperations = new Set(["instance", "heapIndex", "dueMs"]);

test("every field of an instance and of its operation counts in its hash", () => {
  const digestOf = (change: (instance: Instance, operation: Operation) => void) => {
    const table = new InstanceTable();
    const instance = table.take("", cell);
    change(instance, table.begin(instance, OperationKind.none, 0, 0));
    const hash = new StateHash();
    instance.hashInto(hash);
    return hash.digest();
  };
  const other = (value: unknown) =>
    typeof value === "boolean" ? !value : typeof value === "string" ? "x" : 1;
  const plain = digestOf(() => undefined);
  let counted = 0;
  const check = (of: object, names: ReadonlySet<string>, pick: (...all: [Instance, Operation]) => object) => {
    for (const [name, value] of Object.entries(of) as [string, unknown][]) {
      if (names.has(name)) continue;
      const digest = digestOf((...all) => Object.assign(pick(...all), { [name]: other(value) }));
      expect([name, digest === plain]).toEqual([name, false]);
      counted += 1;
    }
  };
  check(new Instance(0, "r", cell), uncounted, (instance) => instance);
  check(numbers(0), uncounted, (instance) => instance);
  check(new Operation(), uncountedOfOperations, (_, operation) => operation);
  expect(counted).toBeGreaterThan(25);
  const due = digestOf((_, operation) => Object.assign(operation, { heapIndex: 0, dueMs: 5 }));
  const past = digestOf((instance) => (instance.pastBallots = [{ number: 1, sequence: 1, until: 1 }]));
  expect(new Set([plain, due, past]).size).toBe(3);
});
