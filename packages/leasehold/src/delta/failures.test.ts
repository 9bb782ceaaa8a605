import { expect, test } from "vitest";
import { LeaseholdError } from "../lease/errors.js";
import { noMajority } from "./failures.js";

const full = new LeaseholdError("STORE_FULL", "a: it is full");
const away = new LeaseholdError("STORE_UNAVAILABLE", "a: it is away");

test("too few stores are counted, and each reason is given once", () => {
  expect(noMajority(3, 2, 1, [away, away, undefined])).toMatchObject({
    code: "NO_QUORUM",
    message: "no majority of the 3 stores answered in time: 1 did, and 2 are needed: a: it is away",
  });
});

test("a single store is not counted", () => {
  expect(noMajority(1, 1, 0, [undefined]).message).toBe("the only store did not answer, or not in time");
  expect(noMajority(1, 1, 0, [away]).message).toBe(
    "the only store did not answer, or not in time: a: it is away",
  );
});

test("a permanent failure is reported itself if it prevents a majority, and not before", () => {
  expect(noMajority(3, 2, 1, [full, full, undefined])).toBe(full);
  expect(noMajority(3, 2, 1, [full, undefined, undefined]).code).toBe("NO_QUORUM");
  expect(noMajority(1, 1, 0, [full])).toBe(full);
});
