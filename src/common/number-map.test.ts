import { getHeapSpaceStatistics } from "node:v8";
import fc from "fast-check";
import { expect, test } from "vitest";
import { NumberMap } from "./number-map.js";

test("it has what a Map would have, in its order", () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("set"), key: fc.nat(9), value: fc.nat() }),
    fc.record({ do: fc.constantFrom("delete", "clear"), key: fc.nat(9), value: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const [map, numbers] = [new Map<number, number>(), new NumberMap<number>()];
      for (const { do: what, key, value } of steps) {
        if (what === "set") {
          map.set(key, value);
          numbers.set(key, value);
        } else if (what === "delete") expect(numbers.delete(key)).toBe(map.delete(key));
        else {
          map.clear();
          numbers.clear();
        }
        expect([...numbers.entries()]).toEqual([...map]);
        expect([...numbers.values()]).toEqual([...map.values()]);
        expect([numbers.first(), numbers.size]).toEqual([[...map][0], map.size]);
        expect([numbers.get(key), numbers.has(key)]).toEqual([map.get(key), map.has(key)]);
      }
    }),
  );
});

test("who reads may take away and add", () => {
  const numbers = new NumberMap<string>();
  for (const key of [1, 2, 3]) numbers.set(key, `${key}`);
  const seen: string[] = [];
  for (const [key, value] of numbers.entries()) {
    seen.push(value);
    numbers.delete(key);
    numbers.delete(2);
    if (key === 1) numbers.set(4, "4");
  }
  expect([seen, numbers.size]).toEqual([["1", "3", "4"], 0]);
});

const oldBytes = () =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === "old_space")!.space_used_size;

/** How much becomes old of values that are soon deleted, once the map itself has become old. */
function agedBytes(map: NumberMap<object>): number {
  let key = 0;
  let aged = 0;
  const come = (count: number) => {
    let before = oldBytes();
    for (const end = key + count; key < end; key += 1) {
      map.set(key, new Array<number>(100).fill(0));
      map.delete(key - 256);
      if (key % 1_000 !== 0) continue;
      const now = oldBytes();
      aged += Math.max(0, now - before);
      before = now;
    }
  };
  come(1_000);
  for (let other = 0; other < 50_000; other += 1) new Array<number>(100).fill(0);
  come(100_000);
  return aged;
}

test("values that have been deleted are young when they are collected; those of a Map would be old", () => {
  expect(agedBytes(new NumberMap())).toBeLessThan(10_000_000);
});
