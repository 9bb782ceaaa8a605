import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keyOf, markerKey, parseKeyPage, registerOf } from "./keys.js";

describe("keys", () => {
  test("a register's key is one segment, and decodes to the register", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (register) => {
        expect(registerOf(keyOf(register))).toBe(register);
        expect(keyOf(register)).not.toMatch(/\//);
      }),
    );
  });

  test("the key of a prefix is a prefix of the keys below it", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (prefix, rest) => {
        expect(keyOf(prefix + rest).startsWith(keyOf(prefix))).toBe(true);
      }),
    );
  });

  test("the marker sorts before every register, and is none", () => {
    expect(markerKey < keyOf("")).toBe(true);
    expect(registerOf(markerKey)).toBeUndefined();
  });
});

test("a page of keys is parsed with its escapes, its encoding and the token of the next page", () => {
  const page = (middle: string) => `<?xml version="1.0"?><ListBucketResult>${middle}</ListBucketResult>`;
  const plain = page(
    "<Contents><Key>a&amp;b &lt;c&gt; &#x65E5;+</Key></Contents><Contents><Key>d</Key></Contents>",
  );
  expect(parseKeyPage(plain)).toEqual({ keys: ["a&b <c> 日+", "d"], next: undefined });
  const encoded = page(
    "<EncodingType>url</EncodingType><Key>a+b%2Bc%252F</Key><NextContinuationToken>x&amp;y</NextContinuationToken>",
  );
  expect(parseKeyPage(encoded)).toEqual({ keys: ["a b+c%2F"], next: "x&y" });
  expect(parseKeyPage(page(""))).toEqual({ keys: [], next: undefined });
});
