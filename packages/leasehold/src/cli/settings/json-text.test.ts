import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Placed, readJson } from "./json-text.js";

function plain({ value }: Placed): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, each]) => [key, plain(each)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

const said = (text: string) => readJson(text, "f").faults.map(({ where, message }) => `${where} ${message}`);

describe("the reader of JSON", () => {
  test("reads what JSON.parse reads", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), fc.boolean(), (json, isIndented) => {
        const expected: unknown = JSON.parse(json);
        const text = isIndented ? JSON.stringify(expected, undefined, "\t") : json;
        const { root, faults } = readJson(text, "f");
        expect(faults).toEqual([]);
        expect(plain(root!)).toEqual(expected);
      }),
    );
  });

  test("refuses what JSON.parse refuses, whatever was cut out or put in", () => {
    const character = fc.constantFrom(..."{}[]\",:\\ \n01.-+eEtfn/'");
    fc.assert(
      fc.property(fc.json({ maxDepth: 3 }), fc.nat(), fc.nat(2), character, (json, at, cut, put) => {
        const place = at % (json.length + 1);
        const text = json.slice(0, place) + put + json.slice(place + cut);
        const isJson = (() => {
          try {
            JSON.parse(text);
            return true;
          } catch {
            return false;
          }
        })();
        const isRead = readJson(text, "f").root !== undefined;
        expect([text, isRead]).toEqual([text, isJson]);
      }),
      { numRuns: 2_000 },
    );
  });

  test("names the line", () => {
    expect(said('{\n  "a": 1,\n  "a": 2\n}')).toEqual(['f:3 "a" stands here again']);
    expect(said('{ "a": 1\n  "b": 2 }')).toEqual(['f:2 here is "\\"b\\":", and "," or "}" was expected']);
    expect(said('{ "a": "x\n" }')).toEqual(["f:1 this text has no end on its line, or an unknown escape"]);
    expect(said("[".repeat(40))).toEqual(["f:1 it is nested too deeply"]);
    expect(said('\uFEFF{ "a": 1 }')).toEqual([]);
  });
});
