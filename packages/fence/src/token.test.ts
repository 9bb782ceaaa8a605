import { expect, test } from "vitest";
import { checkToken, parseToken, tokenInGeneration, tokenMax } from "./token.js";

const invalid = expect.objectContaining({ code: "TOKEN_INVALID" }) as Error;

test.each([
  "",
  "0",
  "-1",
  "+1",
  "01",
  " 1",
  "1 ",
  "1n",
  "1e3",
  "0x1",
  "NaN",
  "9223372036854775808",
  "1".repeat(99),
])("%j is no token", (text) => {
  expect(() => parseToken(text)).toThrow(invalid);
});

test("the smallest and the greatest token are read from text and accepted", () => {
  expect([parseToken("1"), parseToken("9223372036854775807")]).toEqual([1n, tokenMax]);
  checkToken(tokenMax);
});

test("tokens of a later generation are all greater, and those of the last generation are valid", () => {
  const last = 2n ** 53n - 1n;
  expect(tokenInGeneration(5n, 0)).toBe(5n);
  expect(tokenInGeneration(1n, 8)).toBeGreaterThan(tokenInGeneration(last, 7));
  expect(tokenInGeneration(last, 1_023)).toBe(tokenMax);
});

test.each([
  [2n ** 53n, 1],
  [1n, 1_024],
  [1n, -1],
  [1n, 0.5],
  [1n, Number.NaN],
  [0n, 1],
])("token %s in generation %s is refused", (token, generation) => {
  expect(() => tokenInGeneration(token, generation)).toThrow(invalid);
});
