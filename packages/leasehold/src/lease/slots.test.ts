import { describe, expect, test } from "vitest";
import { isResourceName } from "./resource-name.js";
import { limitMax, refuseSlotName, slotNames, slotNumber } from "./slots.js";

function isSlotName(name: string): boolean {
  try {
    refuseSlotName(name);
    return false;
  } catch {
    return true;
  }
}

describe("the slots of a counted lease", () => {
  test("are the name itself, and names that nobody can give; each has its number", () => {
    for (const name of ["a", "workers/7", "~1", "a~1", "a/~", "a/~1x", "a/1", "资源/~r2"]) {
      const [first, ...others] = slotNames(name, limitMax);
      expect(first).toBe(name);
      expect(isSlotName(name)).toBe(false);
      expect(slotNumber(name)).toBe(0);
      expect(others.every(isSlotName)).toBe(true);
      expect(others.every(isResourceName)).toBe(true);
      expect(others.map(slotNumber)).toEqual(others.map((_, index) => index + 1));
      expect(new Set(others).size).toBe(limitMax - 1);
    }
  });

  test("of a smaller limit are the first of a greater one", () => {
    expect(slotNames("a", 5).slice(0, 3)).toEqual(slotNames("a", 3));
  });

  test("fit into 512 bytes, or the name is refused; without a limit it may be longer", () => {
    expect(() => slotNames("x".repeat(509), 64)).toThrow("longer than 512 bytes");
    expect(slotNames("x".repeat(508), 64)).toHaveLength(64);
    expect(slotNames("x".repeat(512), 1)).toHaveLength(1);
  });
});
