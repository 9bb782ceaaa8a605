import * as fc from "fast-check";
import { expect, test } from "vitest";
import { checkResourceName, checkResourcePrefix } from "./resource-name.js";

test.each([
  "a",
  "reports/nightly",
  "ünïcödé",
  "資源",
  "🔒",
  " ",
  "a".repeat(512),
  "ß".repeat(256),
  "資".repeat(170),
  "🔒".repeat(128),
])("the name %j is accepted", (name) => {
  expect(() => checkResourceName(name)).not.toThrow();
});

test.each([
  ["", "empty"],
  ["a".repeat(513), "longer than 512 bytes"],
  ["ß".repeat(257), "longer than 512 bytes"],
  ["資".repeat(171), "longer than 512 bytes"],
  ["🔒".repeat(129), "longer than 512 bytes"],
  ["a".repeat(100_000), "longer than 512 bytes"],
  ["a\nb", "control character"],
  ["a\u0000", "control character"],
  ["\u007f", "control character"],
  ["\u0085", "control character"],
  ["\ud83d", "surrogate"],
  ["a\udd12b", "surrogate"],
  ["\udd12\ud83d", "surrogate"],
  ["\ud83dx", "surrogate"],
])("the name %j is refused: %s", (name, why) => {
  expect(() => checkResourceName(name)).toThrow(
    expect.objectContaining({ code: "INVALID_NAME", message: expect.stringContaining(why) }),
  );
});

test.each([undefined, null, 7, {}])("%s from a program without types is refused as a name", (name) => {
  expect(() => checkResourceName(name as never)).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
});

test("a prefix may be empty, and may have no control character", () => {
  expect(() => checkResourcePrefix("")).not.toThrow();
  expect(() => checkResourcePrefix("\n")).toThrow(/control/);
});

test("the bytes of a name are counted like the platform's encoder counts them", () => {
  const accepted = (name: string) => {
    try {
      checkResourceName(name);
      return true;
    } catch {
      return false;
    }
  };
  const name = fc.string({ unit: fc.constantFrom("a", "ß", "資", "🔒"), minLength: 100, maxLength: 520 });
  fc.assert(
    fc.property(name, (text) => {
      expect(accepted(text)).toBe(new TextEncoder().encode(text).length <= 512);
    }),
  );
});
