import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { effort } from "../../../../test/support/effort.js";
import { KeptInputs, shrunk } from "../../../../test/support/kept-inputs.js";
import { headerBlock } from "./header-blocks.js";
import { CompressionError, HeaderDecoder } from "./header-decoder.js";
import { huffmanText } from "./huffman.js";

const listBytesMax = 64 * 1024;
const decoded = (decoder: HeaderDecoder, hex: string) =>
  decoder
    .decode(Buffer.from(hex.replaceAll(/\s/g, ""), "hex"))
    .fields.map(([name, value]) => `${name}: ${value}`);

const firstRequest = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const requests = [
  firstRequest,
  [...firstRequest, "cache-control: no-cache"],
  [
    ":method: GET",
    ":scheme: https",
    ":path: /index.html",
    ":authority: www.example.com",
    "custom-key: custom-value",
  ],
];
const date = (second: number) => `date: Mon, 21 Oct 2013 20:13:${second} GMT`;
const location = "location: https://www.example.com";
const responses = [
  [":status: 302", "cache-control: private", date(21), location],
  [":status: 307", "cache-control: private", date(21), location],
  [
    ":status: 200",
    "cache-control: private",
    date(22),
    location,
    "content-encoding: gzip",
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  ],
];
/** A table of 256 bytes, as in the RFC's examples of responses. */
const smallTable = "3fe101";

/** RFC 7541, appendix C. */
test.each([
  ["C.2.1", [["custom-key: custom-header"]], ["400a637573746f6d2d6b65790d637573746f6d2d686561646572"]],
  ["C.2.2", [[":path: /sample/path"]], ["040c2f73616d706c652f70617468"]],
  ["C.2.3", [["password: secret"]], ["100870617373776f726406736563726574"]],
  ["C.2.4", [[":method: GET"]], ["82"]],
  [
    "C.3",
    requests,
    [
      "828684410f7777772e6578616d706c652e636f6d",
      "828684be58086e6f2d6361636865",
      "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ],
  ],
  [
    "C.4",
    requests,
    [
      "828684418cf1e3c2e5f23a6ba0ab90f4ff",
      "828684be5886a8eb10649cbf",
      "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ],
  ],
  [
    "C.5",
    responses,
    [
      `${smallTable}4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d`,
      "4803333037c1c0bf",
      "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
    ],
  ],
  [
    "C.6",
    responses,
    [
      `${smallTable}488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3`,
      "4883640effc1c0bf",
      "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ],
  ],
] as const)("the examples of the standard are read: %s", (_, expected, blocks) => {
  const decoder = new HeaderDecoder(listBytesMax);
  expect(blocks.map((block) => decoded(decoder, block))).toEqual(expected);
});

test.each([
  ["an index that nothing has", "be"],
  ["the index 0", "80"],
  ["a name that nothing has", "7f20"],
  ["a number without end", "ffffffffffffff"],
  ["a text that is longer than the block", "400a63"],
  ["a table that is too large", "3fe2ff03"],
  ["a new size behind a field", "8220"],
  ["padding of Huffman code of a whole byte", "0081ff00"],
  ["padding of Huffman code that is not ones", "00811800"],
  ["the end of Huffman code in a text", "0084ffffffff00"],
])("what is no header block is refused: %s", (_, block) => {
  expect(() => decoded(new HeaderDecoder(listBytesMax), block)).toThrow(CompressionError);
});

test("shrinking the table evicts its oldest entries; shrinking it to 0 bytes evicts all", () => {
  const decoder = new HeaderDecoder(listBytesMax);
  // Three entries of 34 bytes; the newest is 62.
  decoded(decoder, "400161 0131 400162 0132 400163 0133");
  expect(decoded(decoder, "be bf c0")).toEqual(["c: 3", "b: 2", "a: 1"]);
  expect(decoded(decoder, "3f03 be")).toEqual(["c: 3"]);
  expect(() => decoded(decoder, "bf")).toThrow(CompressionError);
  expect(() => decoded(decoder, "20 be")).toThrow(CompressionError);
});

test("too many fields are reported and cost no memory, but update the table as usual", () => {
  const decoder = new HeaderDecoder(10_000);
  const long = Buffer.alloc(3_000, 97).toString("hex");
  decoded(decoder, `400162 7fb916${long}`);
  const bomb = decoder.decode(Buffer.alloc(16_000, 0xbe));
  expect([bomb.isTooLarge, bomb.fields.length]).toEqual([true, 3]);
  expect(decoded(decoder, "be")).toHaveLength(1);
});

test("our own blocks are decoded to the fields that they were made of", () => {
  const text = fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text), { maxLength: 10 }), (fields) => {
      expect(new HeaderDecoder(listBytesMax).decode(headerBlock(fields)).fields).toEqual(fields);
    }),
  );
});

const kept = new KeptInputs(new URL("kept-inputs/", import.meta.url));
const found = new Map<string, Buffer>();
afterAll(() => kept.keep(found));

/** The outcome for one block: `read`, or why it was refused. */
function branchOf(block: Uint8Array): string {
  const outcome = outcomeOf(() => new HeaderDecoder(listBytesMax).decode(Buffer.from(block)));
  return outcome instanceof CompressionError ? outcome.message.replaceAll(/\d+/g, "N") : String(outcome);
}

describe("kept inputs have their recorded outcomes", () => {
  test.each(kept.all)("$name", ({ bytes, outcome }) => expect(branchOf(bytes)).toBe(outcome));
});

test("any block is read or refused in bounded time", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), (blocks) => {
      for (const block of kept.isLooking ? blocks : []) {
        const branch = branchOf(block);
        if (!found.has(branch))
          found.set(
            branch,
            shrunk(Buffer.from(block), (one) => branchOf(one) === branch),
          );
      }
      const decoder = new HeaderDecoder(listBytesMax);
      const outcomes = blocks.map((block) => outcomeOf(() => decoder.decode(block)));
      expect(
        outcomes.filter((outcome) => outcome !== "read" && !(outcome instanceof CompressionError)),
      ).toEqual([]);
    }),
    { numRuns: kept.isLooking ? 500 * effort : 500 },
  );
  expect(huffmanText(Buffer.from("f1e3c2e5f23a6ba0ab90f4ff", "hex"), 0, 12)).toBe("www.example.com");
});

function outcomeOf(read: () => unknown): unknown {
  try {
    read();
    return "read";
  } catch (error) {
    return error;
  }
}
