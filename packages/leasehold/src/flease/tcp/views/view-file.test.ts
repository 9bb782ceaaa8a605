import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stampMax, viewNumberMax } from "../../views/view.js";
import { ViewFile } from "./view-file.js";

let folder = "";
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "leasehold-views-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** The view that a member reads from a file with this content. */
function kept(change: object, note: object = {}) {
  const path = join(folder, "view.json");
  const view = { number: 5, stamp: 5, members: ["a"], cellSize: 1, ...change };
  writeFileSync(path, JSON.stringify({ view, barrier: 0, settled: [], addresses: { a: "h:1" }, ...note }));
  return new ViewFile(path).read();
}

test("a file of an early build is read with its own stamp, or refused with advice", () => {
  // The member at index 3 began the change.
  expect(kept({ stamp: 3 * 2 ** 27 + 5 })?.view.stamp).toBe(3 * 2 ** 27 + 5);
  expect(() => kept({ stamp: 32 * 2 ** 27 + 5 })).toThrow("put a member with another id in its place");
});

test("a file of a later version of Leasehold is refused, and one without a format is read", () => {
  expect(kept({}, { format: 1 })).toEqual(kept({}));
  for (const format of [2, "1", null])
    expect(() => kept({}, { format })).toThrow(expect.objectContaining({ code: "VERSION_MISMATCH" }));
  new ViewFile(join(folder, "view.json")).write({ ...kept({})!, votesFrom: 3 });
  expect(JSON.parse(readFileSync(join(folder, "view.json"), "utf8"))).toMatchObject({ format: 1 });
});

test("numbers are read up to the greatest possible one", () => {
  expect(kept({ number: viewNumberMax, stamp: stampMax })?.view).toMatchObject({ number: viewNumberMax });
  expect(kept({}, { barrier: Number.MAX_SAFE_INTEGER })?.barrier).toBe(Number.MAX_SAFE_INTEGER);
  for (const [view, note] of [
    [{ number: viewNumberMax + 1 }, {}],
    [{ number: -1 }, {}],
    [{ stamp: 1.5 }, {}],
    [{}, { barrier: Number.MAX_SAFE_INTEGER + 1 }],
    [{}, { barrier: 1e300 }],
    [{}, { settled: [["a", 1e300]] }],
  ] as const)
    expect(() => kept(view, note)).toThrow("members cannot be read");
});
