import fc from "fast-check";
import { expect, test } from "vitest";
import { hashOfWords, NameIndex } from "./name-index.js";

/** Here names are numbers, each stored at the position of the same number. */
class Names {
  readonly index = new NameIndex();
  readonly hashes: readonly number[];

  constructor(hashes: readonly number[]) {
    this.hashes = hashes;
  }

  #sought(name: number): { isAt(position: number): boolean } {
    return { isAt: (position) => position === name };
  }

  has(name: number): boolean {
    return this.index.find(this.hashes[name]!, this.#sought(name)) === name;
  }

  add(name: number): void {
    this.index.add(this.hashes[name]!, name);
  }

  remove(name: number): void {
    this.index.remove(this.hashes[name]!, this.#sought(name));
  }
}

/** Many equal hashes, many that differ only in their first or last bits, and some at random. */
const hash = fc.oneof(
  fc.constantFrom(0, -1, 5),
  fc.nat(0xfff),
  fc.nat(0xfff).map((bits) => bits << 20),
  fc.integer(),
);

test("names that were added and not removed are found, however similar their hashes", () => {
  fc.assert(
    fc.property(
      fc.array(hash, { minLength: 1, maxLength: 2_000, size: "max" }),
      fc.array(fc.nat(1_999), { maxLength: 2_000, size: "max" }),
      (hashes, acts) => {
        const names = new Names(hashes);
        const present = new Set(hashes.keys());
        for (const name of present) names.add(name);
        for (const act of acts) {
          const name = act % hashes.length;
          if (present.delete(name)) names.remove(name);
          else names.add(present.add(name) && name);
        }
        expect([...hashes.keys()].filter((name) => names.has(name) !== present.has(name))).toEqual([]);
      },
    ),
    { numRuns: 10 },
  );
});

test("an index that was large and is empty again has one segment", () => {
  const hashOf = (_: unknown, index: number) => hashOfWords(Uint32Array.of(index), 1, 9);
  const names = new Names(Array.from({ length: 30_000 }, hashOf));
  for (const name of names.hashes.keys()) names.add(name);
  const { segments } = names.index;
  expect(segments).toBeGreaterThan(32);
  expect(segments).toBeLessThan(96);
  for (const name of names.hashes.keys()) names.remove(name);
  expect(names.index.segments).toBeLessThanOrEqual(2);
});
