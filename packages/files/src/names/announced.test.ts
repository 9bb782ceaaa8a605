import { expect, test } from "vitest";
import { Announced } from "./announced.js";

test("100,000 announcements are kept, one more is refused, and one that was withdrawn or is over makes room", () => {
  let nowMs = 0;
  const announced = new Announced(() => nowMs, 1_000);
  for (let each = 0; each < 100_000; each += 1) announced.add(`c${each}`, []);
  expect(announced.has("c0")).toBe(true);
  expect(() => announced.add("more", [])).toThrow(expect.objectContaining({ code: "OVERLOADED" }));
  // Repeating an announcement needs no room.
  announced.add("c1", []);
  announced.remove("c2");
  announced.add("more", []);
  nowMs = 999;
  expect(announced.has("more")).toBe(true);
  expect(() => announced.add("later", [])).toThrow(expect.objectContaining({ code: "OVERLOADED" }));
  nowMs = 1_000;
  expect(announced.has("more")).toBe(false);
  announced.add("later", []);
  expect(announced.has("later")).toBe(true);
});
