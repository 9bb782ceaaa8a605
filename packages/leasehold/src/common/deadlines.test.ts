import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type DeadlineItem, Deadlines } from "./deadlines.js";

interface Item extends DeadlineItem {
  id: number;
}

const item = (id: number): Item => ({ id, heapIndex: -1 });

test("an empty heap has nothing due", () => {
  const deadlines = new Deadlines<Item>();
  expect(deadlines.nextDueMs()).toBe(Infinity);
  expect(deadlines.popDue(Infinity)).toBeUndefined();
  expect(deadlines.cancel(item(1))).toBe(false);
});

test("NaN is refused", () => {
  expect(() => new Deadlines<Item>().schedule(item(1), Number.NaN)).toThrow(RangeError);
});

test("items due at the same moment come in scheduling order, and re-scheduling puts one last", () => {
  const deadlines = new Deadlines<Item>();
  const items = [item(0), item(1), item(2), item(3)];
  for (const each of items) deadlines.schedule(each, 5);
  deadlines.schedule(items[1]!, 5);
  const order: number[] = [];
  for (let due = deadlines.popDue(5); due !== undefined; due = deadlines.popDue(5)) order.push(due.id);
  expect(order).toEqual([0, 2, 3, 1]);
});

test("the memory of a large heap is released when all items have gone, and allocated again", () => {
  const deadlines = new Deadlines<Item>();
  const items = Array.from({ length: 10_000 }, (_, id) => item(id));
  for (let round = 0; round < 2; round += 1) {
    for (const each of items) deadlines.schedule(each, (each.id * 7_919) % 10_007);
    for (const each of items) if (each.id % 3 === 0) deadlines.cancel(each);
    const order: number[] = [];
    for (let due = deadlines.popDue(Infinity); due !== undefined; due = deadlines.popDue(Infinity))
      order.push((due.id * 7_919) % 10_007);
    expect(order).toEqual(
      items
        .filter(({ id }) => id % 3 !== 0)
        .map(({ id }) => (id * 7_919) % 10_007)
        .toSorted((a, b) => a - b),
    );
    expect([deadlines.size, deadlines.nextDueMs()]).toEqual([0, Infinity]);
  }
});

test("it behaves like a sorted list under any sequence of calls", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("schedule"), id: fc.nat(39), at: fc.nat(20) }),
    fc.record({ kind: fc.constant("cancel"), id: fc.nat(39), at: fc.constant(0) }),
    fc.record({ kind: fc.constant("pop"), id: fc.constant(0), at: fc.nat(20) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const deadlines = new Deadlines<Item>();
      const items = Array.from({ length: 40 }, (_, id) => item(id));
      let model: { id: number; dueMs: number; sequence: number }[] = [];
      let sequence = 0;
      for (const { kind, id, at } of steps) {
        let actual: boolean | number | undefined;
        let expected: boolean | number | undefined;
        if (kind === "schedule") {
          deadlines.schedule(items[id]!, at);
          model = model.filter((entry) => entry.id !== id);
          model.push({ id, dueMs: at, sequence: sequence++ });
          model.sort((a, b) => a.dueMs - b.dueMs || a.sequence - b.sequence);
        } else if (kind === "cancel") {
          expected = model.some((entry) => entry.id === id);
          actual = deadlines.cancel(items[id]!);
          model = model.filter((entry) => entry.id !== id);
        } else {
          expected = model[0] !== undefined && model[0].dueMs <= at ? model.shift()!.id : undefined;
          actual = deadlines.popDue(at)?.id;
        }
        expect(actual).toBe(expected);
        expect(deadlines.size).toBe(model.length);
        expect(deadlines.nextDueMs()).toBe(model[0]?.dueMs ?? Infinity);
        for (const each of items) {
          const entry = model.find(({ id: present }) => present === each.id);
          expect(each.heapIndex !== -1).toBe(entry !== undefined);
          expect(each.heapIndex === -1 ? undefined : deadlines.dueMs(each)).toBe(entry?.dueMs);
        }
        const inOrder = model.toSorted((a, b) => a.sequence - b.sequence);
        expect(deadlines.inOrder().map(({ id: present }) => present)).toEqual(
          inOrder.map((entry) => entry.id),
        );
      }
    }),
    { numRuns: 300 },
  );
});
