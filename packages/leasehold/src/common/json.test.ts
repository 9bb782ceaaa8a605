import { expect, test } from "vitest";
import { isCount, isRecord, recordOrEmpty, textOrEmpty } from "./json.js";

const values: unknown[] = [undefined, null, true, 0, 1.5, -1, 2 ** 53, NaN, "", "a", [], ["a"], {}, { a: 1 }];

test("only an object is a record: null and lists are not", () => {
  expect(values.filter(isRecord)).toEqual([{}, { a: 1 }]);
  expect(values.map(recordOrEmpty)).toEqual([...values.slice(1).map(() => ({})), { a: 1 }]);
});

test("only text is text", () => {
  expect(values.map(textOrEmpty).filter((text) => text !== "")).toEqual(["a"]);
});

test("a count is whole, not negative, and exact", () => {
  expect([...values, Number.MAX_SAFE_INTEGER].filter(isCount)).toEqual([0, Number.MAX_SAFE_INTEGER]);
});
