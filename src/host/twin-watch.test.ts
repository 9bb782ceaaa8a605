import { expect, test } from "vitest";
import { RIVAL_NOTICE_MS, TWIN_MEMORY_MS, TwinWatch } from "./twin-watch.js";

test("a process that has met no majority yet is silent, and has nothing to warn of", () => {
  const twins = new TwinWatch();
  expect(twins.mustBeSilent(0)).toBe(true);
  expect(twins.isTwin(0)).toBe(false);
  expect(twins.notice(0)).toBeUndefined();
  twins.majorityMet();
  expect(twins.mustBeSilent(1e9)).toBe(false);
});

test("one that was refused is silent until each that refused it has taken it", () => {
  const twins = new TwinWatch();
  twins.majorityMet();
  twins.refusedBy("b:1", "another is a", 0);
  twins.refusedBy("c:1", "another is a", 100);
  twins.acceptedBy("b:1");
  expect(twins.mustBeSilent(200)).toBe(true);
  expect(twins.notice(200)).toBe("another is a");
  twins.acceptedBy("c:1");
  expect(twins.mustBeSilent(201)).toBe(false);
  expect(twins.notice(201)).toBeUndefined();
});

test("a refusal by one that has gone is forgotten in time, and renewed by each further one", () => {
  const twins = new TwinWatch();
  twins.majorityMet();
  twins.refusedBy("b:1", "another is a", 0);
  twins.refusedBy("b:1", "another is a", 5_000);
  expect(twins.mustBeSilent(5_000 + TWIN_MEMORY_MS - 1)).toBe(true);
  expect(twins.mustBeSilent(5_000 + TWIN_MEMORY_MS)).toBe(false);
});

test("one whose rival was seen goes on, and says so for a while", () => {
  const twins = new TwinWatch();
  twins.majorityMet();
  twins.rivalSeen("another at x", 0);
  expect(twins.mustBeSilent(1)).toBe(false);
  expect(twins.notice(RIVAL_NOTICE_MS - 1)).toBe("another at x");
  expect(twins.notice(RIVAL_NOTICE_MS)).toBeUndefined();
});
