import * as fc from "fast-check";
import { expect, test } from "vitest";
import { dataBytesMax, dataField, dataIn, dataText, withData } from "./tenure-data.js";

const quiet = { noInvalidStrings: true, noUnicodeString: false, maxDepth: 3 };

test("data that one participant gives is read by others, if it fits", () => {
  fc.assert(
    fc.property(fc.jsonValue(quiet), (value) => {
      fc.pre(!JSON.stringify(value).includes("__proto__") && JSON.stringify(value).length < 300);
      const text = dataText(value);
      expect(JSON.stringify(dataField(text).data)).toBe(JSON.stringify(value));
      const record = JSON.parse(withData('{"a":1}', text)) as { data: unknown };
      expect(dataIn(record.data)).toBe(text);
    }),
  );
});

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;

test.each([
  [{ port: 1n }, "data.port: JSON has no bigint"],
  [[Number.NaN], "data[0]: JSON has no NaN"],
  [{ a: [undefined] }, "data.a[0]: JSON has no undefined"],
  [{ at: new Date(0) }, "data.at: JSON carries plain objects"],
  [{ toJSON: () => 1 }, "data.toJSON: JSON has no function"],
  [cycle, "it refers to itself"],
  [JSON.parse('{"a":{"__proto__":1}}'), "data.a.__proto__: this name"],
  ["x".repeat(1_023), "1025 bytes of JSON where 1024 are allowed"],
  ["é".repeat(512), "1026 bytes of JSON"],
])("data that JSON can't carry, or that is too long, is refused by name: %#", (data, why) => {
  expect(() => dataText(data)).toThrow(
    expect.objectContaining({ code: "INVALID_CONFIG", message: expect.stringContaining(why) as string }),
  );
  expect(dataIn(data)).toBeUndefined();
});

test("whatever others left is read as their data or not at all", () => {
  const hostile = [
    undefined,
    7,
    "",
    "{",
    '{"__proto__":{"admin":true}}',
    '{"a":1,"a":2}',
    " 1",
    "[".repeat(512) + "]".repeat(512) + " ",
    "[".repeat(100_000),
    `"${"x".repeat(dataBytesMax)}"`,
  ];
  for (const text of hostile) expect(dataField(text)).toEqual({});
  expect(dataField("[".repeat(512) + "]".repeat(512))).toHaveProperty("data");
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const { data } = dataField(text);
      expect([undefined, text]).toContain(JSON.stringify(data));
    }),
  );
});
