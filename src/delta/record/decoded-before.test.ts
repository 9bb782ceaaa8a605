import { expect, test } from "vitest";
import { DecodedBefore, keptMax } from "./decoded-before.js";

function counted() {
  const decoded: string[] = [];
  const memory = new DecodedBefore((bytes) => {
    const text = new TextDecoder().decode(bytes);
    decoded.push(text);
    if (text.startsWith("bad")) throw new Error(text);
    return { text };
  });
  const decode = (text: string) => memory.decode(new TextEncoder().encode(text)).text;
  return { decoded, memory, decode };
}

test("the same bytes are decoded once, wherever they come from", () => {
  const { decoded, decode } = counted();
  expect([decode("one 12345678"), decode("two 12345678"), decode("two 12345678")]).toEqual([
    "one 12345678",
    "two 12345678",
    "two 12345678",
  ]);
  expect(decoded).toEqual(["one 12345678", "two 12345678"]);
});

test("any one byte that is another is seen, also in a buffer that was read before", () => {
  const { memory } = counted();
  const bytes = new TextEncoder().encode("a content of more bytes than are hashed");
  for (let index = 0; index < bytes.length; index += 1) {
    const before = memory.decode(bytes).text;
    bytes[index]! ^= 1;
    expect(memory.decode(bytes).text).not.toBe(before);
  }
});

test("what is refused is refused again", () => {
  const { decoded, decode } = counted();
  for (let times = 0; times < 2; times += 1) expect(() => decode("bad 12345678")).toThrow("bad");
  expect(decoded).toHaveLength(2);
});

test(`no more than ${keptMax} contents are kept, and none that is long`, () => {
  const { decoded, decode } = counted();
  for (let index = 0; index <= keptMax; index += 1) decode(`content ${index}`);
  decode("content 1");
  expect(decoded).toHaveLength(keptMax + 1);
  decode("content 0");
  expect(decoded).toHaveLength(keptMax + 2);
  const long = "-".repeat(1_025);
  for (let times = 0; times < 2; times += 1) decode(long);
  expect(decoded).toHaveLength(keptMax + 4);
});
