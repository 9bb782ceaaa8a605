import { expect, test } from "vitest";
import { Buffers } from "./buffers.js";

const mebibyte = 2 ** 20;

test("what was given back is taken again, for as many bytes or fewer", () => {
  const buffers = new Buffers();
  const first = buffers.take(100_000);
  expect(first).toHaveLength(100_000);
  expect(buffers.take(100_000).buffer).not.toBe(first.buffer);
  buffers.give(first);
  const second = buffers.take(90_000);
  expect(second).toHaveLength(90_000);
  expect(second.buffer).toBe(first.buffer);
  expect(buffers.take(90_000).buffer).not.toBe(first.buffer);
  buffers.give(second);
  expect(buffers.take(200_000).buffer).not.toBe(first.buffer);
});

test("8 MiB are kept, and what is given beyond them is not", () => {
  const buffers = new Buffers();
  const taken = Array.from({ length: 9 }, () => buffers.take(mebibyte));
  for (const each of taken) buffers.give(each);
  const again = new Set(Array.from({ length: 9 }, () => buffers.take(mebibyte).buffer));
  expect(taken.map(({ buffer }) => again.has(buffer))).toEqual([...Array<boolean>(8).fill(true), false]);
});
