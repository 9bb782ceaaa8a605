import { expect, test } from "vitest";
import { getOrInsert } from "./maps.js";

test("a value is created once for each key, even a falsy one", () => {
  const made: string[] = [];
  const map = new Map([["a", 1]]);
  const make = (key: string) => made.push(key) - 1;
  expect(["a", "b", "b", "c"].map((key) => getOrInsert(map, key, make))).toEqual([1, 0, 0, 1]);
  expect(made).toEqual(["b", "c"]);
});
