import { describe, expect, test } from "vitest";
import { Cells } from "./cells.js";

const thirty = Array.from({ length: 30 }, (_, index) => `m${String(index).padStart(2, "0")}`);
const resources = Array.from({ length: 60_000 }, (_, index) => `orders/${index}`);

describe("the cell of a resource", () => {
  test("is all members when the cluster is no larger than a cell", () => {
    const cells = new Cells(["a", "b", "c"], 5);
    expect(cells.of("x")).toEqual({ members: [0, 1, 2], majority: 2 });
    expect(cells.of("x")).toBe(cells.of("y"));
  });

  test("is found among a thousand members, in a bounded cache", () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => `m${index}`);
    const cells = new Cells(ids, 3);
    const first = cells.of("orders/0");
    expect(cells.of("orders/0")).toBe(first);
    for (const resource of resources.slice(0, 12_000)) {
      const { members } = cells.of(resource);
      expect(members.length === 3 && members[0]! < members[1]! && members[1]! < members[2]!).toBe(true);
    }
    expect(cells.of("orders/0")).not.toBe(first);
    expect(cells.of("orders/0")).toEqual(first);
  });

  test("is the same wherever it is computed, and never changes silently", () => {
    const cell = (resource: string) =>
      new Cells(thirty, 3).of(resource).members.map((index) => thirty[index]);
    // Golden values: a change means that the cell function has changed, and needs a new version.
    expect(cell("orders/1")).toMatchInlineSnapshot(`
      [
        "m06",
        "m10",
        "m14",
      ]
    `);
    expect(cell("reports/nightly")).toMatchInlineSnapshot(`
      [
        "m05",
        "m16",
        "m26",
      ]
    `);
    expect(cell("größe/☃")).toMatchInlineSnapshot(`
      [
        "m10",
        "m13",
        "m26",
      ]
    `);
  });

  test("spreads the load: with 30 members and cells of 3 each member has about a tenth of the resources", () => {
    const cells = new Cells(thirty, 3);
    const load = thirty.map(() => 0);
    for (const resource of resources) for (const member of cells.of(resource).members) load[member]! += 1;
    const mean = (resources.length * 3) / 30;
    expect(Math.max(...load) / mean).toBeLessThan(1.05);
    expect(Math.min(...load) / mean).toBeGreaterThan(0.95);
  });

  test("keeps a majority when any one member is lost, and loses about 2 % of the resources to any three", () => {
    const cells = new Cells(thirty, 3);
    const stopped = (lost: readonly number[]) =>
      resources.filter((resource) => {
        const { members, majority } = cells.of(resource);
        return members.filter((member) => !lost.includes(member)).length < majority;
      }).length / resources.length;
    expect(stopped([7])).toBe(0);
    // With 3 of 30 members lost and cells of 3, (3·27 + 1) of 4060 cells have lost two or three of their
    // members.
    expect(stopped([3, 14, 25])).toBeCloseTo(82 / 4060, 2);
  });

  test("moves only what must move when a member goes", () => {
    const before = new Cells(thirty, 3);
    const remaining = thirty.slice(0, -1);
    const after = new Cells(remaining, 3);
    for (const resource of resources.slice(0, 5_000)) {
      const kept = before.of(resource).members.filter((index) => index < remaining.length);
      expect(after.of(resource).members).toEqual(expect.arrayContaining(kept));
    }
  });
});
