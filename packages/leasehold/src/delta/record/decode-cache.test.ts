import { expect, test } from "vitest";
import { DecodeCache, keptMax } from "./decode-cache.js";

function counted() {
  const decoded: string[] = [];
  const memory = new DecodeCache((bytes) => {
    const text = new TextDecoder().decode(bytes);
    decoded.push(text);
    if (text.startsWith("bad")) throw new Error(text);
    return { text };
  });
  const decode = (text: string) => memory.decode(new TextEncoder().encode(text)).text;
  return { decoded, memory, decode };
}

test("equal bytes are decoded once, wherever they come from", () => {
  const { decoded, decode } = counted();
  expect([decode("one 12345678"), decode("two 12345678"), decode("two 12345678")]).toEqual([
    "one 12345678",
    "two 12345678",
    "two 12345678",
  ]);
  expect(decoded).toEqual(["one 12345678", "two 12345678"]);
});

test("a difference of any one byte is detected, also in a buffer that was read before", () => {
  const { memory } = counted();
  const bytes = new TextEncoder().encode("a content of more bytes than are hashed");
  for (let index = 0; index < bytes.length; index += 1) {
    const before = memory.decode(bytes).text;
    bytes[index]! ^= 1;
    expect(memory.decode(bytes).text).not.toBe(before);
  }
});

test("refused content is refused again", () => {
  const { decoded, decode } = counted();
  for (let times = 0; times < 2; times += 1) expect(() => decode("bad 12345678")).toThrow("bad");
  expect(decoded).toHaveLength(2);
});

test(`no more than ${keptMax} contents are cached, and no long one`, () => {
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
