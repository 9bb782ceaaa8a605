import { getHeapSpaceStatistics } from "node:v8";
import fc from "fast-check";
import { expect, test } from "vitest";
import { NumberMap } from "./number-map.js";

/** The result of a step on the map. */
function does(map: Map<number, number> | NumberMap<number>, [what, key, value]: Step): unknown {
  if (what === "set") map.set(key, value);
  return what === "clear" ? map.clear() : what === "delete" && map.delete(key);
}

const steps = fc.array(fc.tuple(fc.constantFrom("set", "set", "delete", "clear"), fc.nat(9), fc.nat()));
type Step = [what: string, key: number, value: number];

test("it has the content and order of a Map", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const [map, numbers] = [new Map<number, number>(), new NumberMap<number>()];
      for (const step of all) {
        expect(does(numbers, step)).toBe(does(map, step));
        expect([...numbers.entries()]).toEqual([...map]);
        expect([...numbers.values()]).toEqual([...map.values()]);
        expect([numbers.first(), numbers.size]).toEqual([[...map][0], map.size]);
        expect([numbers.get(step[1]), numbers.has(step[1])]).toEqual([map.get(step[1]), map.has(step[1])]);
      }
    }),
  );
});

test("a reader may delete and add", () => {
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

const hundred = Array.from({ length: 100 }, () => 0);

/** The bytes of deleted values that are promoted after the map itself has been. */
function agedBytes(map: NumberMap<object>): number {
  let key = 0;
  let aged = 0;
  const come = (count: number) => {
    let before = oldBytes();
    for (const end = key + count; key < end; key += 1) {
      map.set(key, hundred.slice());
      map.delete(key - 256);
      if (key % 1_000 !== 0) continue;
      const now = oldBytes();
      aged += Math.max(0, now - before);
      before = now;
    }
  };
  come(1_000);
  const others = Array.from({ length: 100 });
  for (let other = 0; other < 50_000; other += 1) others[other % 100] = hundred.slice();
  come(100_000);
  return aged;
}

test("deleted values are collected young; those of a Map would be promoted", () => {
  expect(agedBytes(new NumberMap())).toBeLessThan(10_000_000);
});
