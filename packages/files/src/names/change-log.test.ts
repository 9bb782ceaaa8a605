import { expect, test } from "vitest";
import { ChangeLog, keptAtLeast, type NameEvent, seenFrom } from "./change-log.js";
import { decodeNames, encodeNames } from "./records.js";
import { pathBytesMax } from "./snapshots.js";

const file = (what: NameEvent["what"], path: string, more: Partial<NameEvent> = {}): NameEvent => ({
  what,
  path,
  isFolder: false,
  ...more,
});
const folder = (what: NameEvent["what"], path: string, more: Partial<NameEvent> = {}): NameEvent =>
  file(what, path, { isFolder: true, ...more });

const all = (log: ChangeLog, after: number): (string | number)[] | undefined =>
  log.after(after, "", 1_000)?.events.flatMap(([number, { path }]) => [number, path]);

test.each<[string, NameEvent, string | undefined]>([
  ["a file in it", file("created", "d/e/x"), "created d/e/x"],
  ["itself", folder("removed", "d/e"), "removed d/e"],
  ["a file beside it", file("created", "d/ex"), undefined],
  ["a move within it", file("renamed", "d/e/y", { from: "d/e/x" }), "renamed d/e/y"],
  ["a move out of it", file("renamed", "y", { from: "d/e/x" }), "removed d/e/x"],
  ["a move into it", file("renamed", "d/e/x", { from: "y" }), "created d/e/x"],
  ["a move over a file of it", file("renamed", "d/e/x", { from: "y", existed: true }), "replaced d/e/x"],
  ["a move of the folder above", folder("renamed", "z", { from: "d" }), "removed d/e"],
  ["a move of another folder to above", folder("renamed", "d", { from: "z" }), "created d/e"],
  ["the removal of the folder above", folder("removed", "d"), "removed d/e"],
  ["a copy to the folder above", folder("replaced", "d"), "replaced d/e"],
  ["a file instead of the folder above", file("replaced", "d"), "removed d/e"],
  [
    "a move of a file over the folder above",
    file("renamed", "d", { from: "z", existed: true }),
    "removed d/e",
  ],
  ["a new empty folder above", folder("created", "d", { isEmpty: true }), undefined],
  ["attributes of the folder above", folder("touched", "d"), undefined],
])("a follower of d/e sees %s as it concerns it", (_what, event, seen) => {
  const found = seenFrom(event, "d/e");
  expect(found && `${found.what} ${found.path}`).toBe(seen);
  expect(found?.from === undefined || found.from.startsWith("d/e/")).toBe(true);
});

test("the log keeps the last changes, and knows which are gone", () => {
  const log = new ChangeLog(3);
  for (const path of ["a", "b", "c", "d", "e"]) log.add(log.part([file("created", path)]));
  expect(all(log, 2)).toEqual([3, "c", 4, "d", 5, "e"]);
  expect(all(log, 5)).toEqual([]);
  expect([all(log, 1), all(log, 6), all(log, NaN), all(log, -1)]).toEqual(Array(4).fill(undefined));
});

test("the log is bounded by the length of paths, too, and fits into a record", () => {
  const log = new ChangeLog(10_000);
  const long = "\u4e00".repeat(160);
  for (let at = 0; at < 3_000; at += 1) log.add(log.part([file("renamed", long, { from: long })]));
  const { events, first } = log.whole();
  expect(events.length).toBeGreaterThan(2_000);
  expect(first).toBe(3_001 - events.length);
  expect(encodeNames({ nextId: 1, facts: [], log: log.whole() }).length).toBeLessThan(3 * 2 ** 20);
});

test("records replay to the same log, also with a snapshot that ended or did not", () => {
  const log = new ChangeLog(4);
  log.begin("one");
  const records: ReturnType<ChangeLog["part"]>[] = [];
  const put = (...paths: string[]): void => {
    records.push(log.part(paths.map((path) => file("created", path, { version: "v", size: 1 }))));
    log.add(records.at(-1));
  };
  put("a", "b");
  put("c");
  const snapshot = records.push(log.whole()) - 1;
  put("d", "e", "f");
  records.push(log.part([]));
  put("g");
  for (const from of [0, snapshot]) {
    const again = new ChangeLog(4);
    for (const record of records.slice(from))
      again.add(decodeNames(encodeNames({ nextId: 1, facts: [], log: record })).log);
    expect(again.whole()).toEqual(log.whole());
  }
});

test.each([
  ["no changes", [1, [], [], null]],
  ["no birth", [1, [], [], null, [2, [["created", "b", 0]]]]],
])("another log begins behind a record of a version that recorded %s", (_what, record) => {
  const log = new ChangeLog(4);
  expect(log.begin("one")).toBe(true);
  log.add(log.part([file("created", "a")]));
  expect(log.begin("two")).toBe(false);
  log.add(decodeNames(new TextEncoder().encode(JSON.stringify(record))).log);
  expect([log.begin("two"), log.birth, log.last]).toEqual([true, "two", 0]);
  const again = new ChangeLog(4);
  again.add(decodeNames(encodeNames({ nextId: 1, facts: [], log: log.part([]) })).log);
  expect([again.begin("three"), again.birth]).toEqual([false, "two"]);
});

test("a thousand changes are kept, however long their paths are", () => {
  const log = new ChangeLog(10_000);
  const long = "x".repeat(pathBytesMax);
  for (let at = 0; at < 3_000; at += 1) log.add(log.part([file("renamed", long, { from: long })]));
  expect(log.whole().events.length).toBeGreaterThan(keptAtLeast);
});

test("a page ends at its limit, and the next one goes on there", () => {
  const log = new ChangeLog(10);
  for (const path of ["d/a", "x", "d/b", "y", "d/c"]) log.add(log.part([file("created", path)]));
  const first = log.after(0, "d", 2)!;
  expect([first.events.length, first.last, first.isMore]).toEqual([2, 4, true]);
  const second = log.after(first.last, "d", 2)!;
  expect([second.events.map(([number]) => number), second.last, second.isMore]).toEqual([[5], 5, false]);
});
