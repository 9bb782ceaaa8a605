import { expect, test } from "vitest";
import { Forwarded, seenMax } from "./forwarded.js";

const sent = (number: number, settled = 0, life = 1) =>
  ({
    kind: "propose",
    from: 2n,
    to: 1n,
    term: 1,
    again: false,
    command: new Uint8Array(),
    life,
    number,
    settled,
  }) as const;
const refusal = (number: number) =>
  ({ kind: "leader-refusal", from: 1n, to: 2n, term: 1, number, failure: "memberNotFound" }) as const;

test("a repeat is recognized until its sender settles it", () => {
  const forwarded = new Forwarded();
  expect(forwarded.outcomeOf(sent(5))).toBeUndefined();
  expect(forwarded.outcomeOf(sent(6))).toBeUndefined();
  forwarded.refused(refusal(6));
  expect([5, 6].map((number) => forwarded.outcomeOf(sent(number)))).toEqual(["taken", "memberNotFound"]);
  expect(forwarded.refusalsTo(2n)).toEqual([{ number: 6, failure: "memberNotFound" }]);
  forwarded.outcomeOf(sent(7, 7));
  expect(forwarded.refusalsTo(2n)).toEqual([]);
});

test("a settled proposal is neither appended nor remembered", () => {
  const forwarded = new Forwarded();
  forwarded.outcomeOf(sent(9, 8));
  expect(forwarded.outcomeOf(sent(7, 7))).toBe("taken");
  forwarded.refused(refusal(7));
  expect(forwarded.refusalsTo(2n)).toEqual([]);
  expect(forwarded.outcomeOf(sent(8, 8))).toBeUndefined();
});

test("equal numbers of another process are other proposals", () => {
  const forwarded = new Forwarded();
  for (let life = 1; life <= 9; life += 1) expect(forwarded.outcomeOf(sent(5, 5, life))).toBeUndefined();
  // The last eight processes are remembered.
  expect([2, 9].map((life) => forwarded.outcomeOf(sent(5, 5, life)))).toEqual(["taken", "taken"]);
});

test("a proposal that cannot be remembered is not refused: its repeat may be accepted", () => {
  const forwarded = new Forwarded();
  for (let number = 1; number <= seenMax; number += 1)
    if (forwarded.outcomeOf(sent(number)) !== undefined) throw new Error(`${number} was not taken`);
  expect(forwarded.outcomeOf(sent(seenMax + 1))).toBe("taken");
  expect(forwarded.outcomeOf({ ...sent(seenMax + 1, 2), again: true })).toBeUndefined();
});
