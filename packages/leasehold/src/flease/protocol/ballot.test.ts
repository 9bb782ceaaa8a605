import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ballotsPerMs, numberAt, ownerName, supersedes, timeOf } from "./ballot.js";

const skewMs = 3;
/** Numbers a few milliseconds apart, among few owners, so that equal and adjacent ones occur. */
const ballot = fc.record({
  number: fc.nat(12).map((ms) => ms * ballotsPerMs),
  owner: fc.constantFrom("p", "q", "s"),
});
type Ballot = { readonly number: number; readonly owner: string };

const passes = (ballot: Ballot, promised: Ballot) =>
  supersedes(ballot.number, ballot.owner, promised.number, promised.owner);

const transitiveIn = (goesBefore: typeof passes) =>
  fc.property(
    ballot,
    ballot,
    ballot,
    (a, b, c) => !(goesBefore(a, b) && goesBefore(b, c)) || goesBefore(a, c),
  );

test("the order of ballots is transitive", () => {
  expect(() => fc.assert(transitiveIn(passes))).not.toThrow();
});

test("an order in which ballots within ε are equal is not transitive (F3)", () => {
  /** The order as published: times within ε count as equal, and names break the tie. */
  const asPublished: typeof passes = (a, b) =>
    Math.abs(a.number - b.number) <= skewMs * ballotsPerMs ? a.owner >= b.owner : a.number > b.number;
  expect(fc.check(transitiveIn(asPublished), { numRuns: 5_000, seed: 1 }).failed).toBe(true);
});

test("two ballots pass each other only when they are one and the same", () => {
  fc.assert(
    fc.property(ballot, ballot, (a, b) => {
      const same = a.number === b.number && a.owner === b.owner;
      expect(passes(a, b) && passes(b, a)).toBe(same);
      expect(passes(a, b) || passes(b, a)).toBe(same || a.number !== b.number);
    }),
  );
});

test("of two ballots with equal numbers the second is refused, whatever the names", () => {
  expect(supersedes(7, "z", 7, "a")).toBe(false);
  expect(supersedes(7, "a", 7, "z")).toBe(false);
  expect(supersedes(7, "a", 7, "")).toBe(false);
  expect(supersedes(7, "a", 7, "a")).toBe(true);
});

test("numbers stay exact until 2089", () => {
  expect(numberAt(Date.UTC(2089, 0, 1))).toBeLessThan(Number.MAX_SAFE_INTEGER);
  expect(numberAt(Date.UTC(2020, 0, 1))).toBe(0);
});

test("a number encodes its millisecond, and grows with it", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2088, 0, 1) }),
      fc.nat(4_095),
      (ms, count) => {
        expect(timeOf(numberAt(ms) + count)).toBe(ms);
        expect(numberAt(ms + 1) - numberAt(ms)).toBe(ballotsPerMs);
        expect(numberAt(ms + 0.75)).toBe(numberAt(ms));
      },
    ),
  );
});

test("an owner is a node and an incarnation of it", () => {
  expect(ownerName("a", "5f00")).toBe("a.5f00");
});
