import { expect, test } from "vitest";
import { notListed } from "./message.js";
import { Waiters } from "./waiters.js";

test("the first who came is the first to be told, and each is told once", () => {
  const waiters = new Waiters();
  expect([waiters.add("r", 5), waiters.add("r", 6), waiters.add("r", 5), waiters.add("s", 6)]).toEqual([
    0, 1, 0, 0,
  ]);
  expect([waiters.next("r"), waiters.next("r"), waiters.next("r")]).toEqual([5, 6, undefined]);
  expect(waiters.size).toBe(1);
});

test("who has left is not told", () => {
  const waiters = new Waiters();
  waiters.add("r", 5);
  waiters.add("r", 6);
  waiters.remove("r", 5);
  waiters.remove("r", 7);
  waiters.remove("unknown", 5);
  expect([waiters.next("r"), waiters.size]).toEqual([6, 0]);
});

test("a list takes 64; who comes later is told so", () => {
  const waiters = new Waiters();
  for (let peer = 0; peer < 64; peer += 1) expect(waiters.add("r", peer)).toBe(peer);
  expect(waiters.add("r", 64)).toBe(notListed);
  expect(waiters.add("r", 63)).toBe(63);
  waiters.next("r");
  expect(waiters.add("r", 64)).toBe(63);
});

test("all lists together are bounded", () => {
  const waiters = new Waiters();
  for (let peer = 0; peer < 100_000; peer += 1) waiters.add(`r${peer}`, peer);
  expect(waiters.add("one more", 1)).toBe(notListed);
  waiters.remove("r7", 7);
  expect(waiters.add("one more", 1)).toBe(0);
});

test("lists of resources that are gone are dropped, some at a time", () => {
  const waiters = new Waiters();
  for (let resource = 0; resource < 10; resource += 1) waiters.add(`r${resource}`, 1);
  for (let call = 0; call < 4; call += 1) waiters.discard((resource) => resource === "r3", 3);
  expect([waiters.size, waiters.next("r3")]).toEqual([1, 1]);
});
