import { describe, expect, test } from "vitest";
import {
  changed,
  check,
  decision,
  done,
  fault,
  looks,
  op,
  release,
  rulesOf,
} from "../../../../../test/support/histories.js";
import type { HistoryEntry } from "./journals/format.js";

/** Hand-made histories of leases with several holders. */

const shared = (entries: HistoryEntry[]) => changed(entries, { mode: "shared" });
const slot = (number: number, limit: number, entries: HistoryEntry[]) =>
  changed(entries, { resource: number === 0 ? "pool" : `pool/~${number}`, pool: "pool", limit });

describe("readers and a writer", () => {
  const readers = [shared(looks("a", 10, 0, 100)), shared(looks("b", 20, 50, 150))];

  test("readers hold beside each other, and begin in any order", () => {
    expect(check(...readers)).toMatchObject({ violations: [], inconclusive: 0 });
    expect(check(shared(looks("a", 20, 0, 100)), shared(looks("b", 10, 50, 150))).violations).toEqual([]);
  });

  test("a writer holds beside no reader, whether its mode is stated or not", () => {
    const writer = looks("c", 30, 120, 200);
    expect(rulesOf(check(...readers, writer))).toEqual(["overlap"]);
    expect(rulesOf(check(...readers, changed(writer, { mode: "exclusive" })))).toEqual(["overlap"]);
    expect(check(...readers, looks("c", 30, 150.01, 200)).violations).toEqual([]);
  });

  test("a writer's token is greater than those of all readers before", () => {
    expect(rulesOf(check(...readers, looks("c", 15, 200, 300)))).toEqual(["token-order"]);
    expect(check(...readers, looks("c", 25, 200, 300)).violations).toEqual([]);
  });

  test("a reader's token is greater than those of all writers before, even if another reader's was greater", () => {
    const later = (token: number) => check(...readers, looks("c", 30, 200), shared(looks("a", token, 300)));
    expect(rulesOf(later(25))).toEqual(["token-order"]);
    expect(later(35).violations).toEqual([]);
    const between = shared(looks("b", 40, 300, 400));
    expect(check(looks("c", 30, 200), between, shared(looks("a", 35, 500))).violations).toEqual([]);
  });

  test("no two have the same token", () => {
    expect(rulesOf(check(shared(looks("a", 10, 0, 9)), shared(looks("b", 10, 5, 9))))).toEqual([
      "token-repeated",
    ]);
  });

  test("a reader that was stopped may find itself beside readers, and not after a writer", () => {
    const stopped = [done("stopped", "a", 101), done("continued", "a", 3_000)];
    const awake = shared(looks("a", 10, 3_001));
    expect(check(...readers, stopped, awake).violations).toEqual([]);
    const writer = looks("c", 30, 2_000, 2_001);
    expect(rulesOf(check(...readers, stopped, awake, writer))).toContain("held-after-pause");
  });

  test("the writer takes over from each of them, and nobody held after the last", () => {
    const report = check(...readers, fault("cut", "a", 90, 95), fault("cut", "b", 140), looks("c", 30, 400));
    expect(report).toMatchObject({ violations: [], takeovers: 2, handovers: 0 });
    expect(report.faults).toEqual([{ kind: "cut", count: 2, interrupted: 2, longestMs: 250.01 }]);
    const given = [...shared([release("a", 10, 110), release("b", 20, 160)])];
    expect(check(...readers, given, looks("c", 30, 400))).toMatchObject({ takeovers: 0, handovers: 2 });
  });

  test("a guard lets readers pass in any order, and none below a writer", () => {
    const asked = (mode: string, event: "accepted" | "refused", token: number, order: number) =>
      changed([decision(event, token, order)], { mode });
    const good = [
      asked("shared", "accepted", 20, 1),
      asked("shared", "accepted", 10, 2),
      asked("exclusive", "refused", 15, 3),
      asked("exclusive", "accepted", 30, 4),
      asked("shared", "refused", 20, 5),
    ];
    expect(check(...good).violations).toEqual([]);
    expect(rulesOf(check(...good, asked("shared", "accepted", 20, 6)))).toEqual(["accepted-order"]);
    expect(rulesOf(check(...good, asked("exclusive", "accepted", 29, 6)))).toEqual(["accepted-order"]);
    expect(rulesOf(check(...good, asked("shared", "refused", 31, 6)))).toEqual(["refusal-unexplained"]);
  });

  test("operations of readers are answered in any order, and none after a writer's with a greater token", () => {
    const reads = [shared([op("b", 20, "accepted", 60, 70)]), shared([op("a", 10, "accepted", 80, 90)])];
    expect(check(...readers, ...reads).violations).toEqual([]);
    const writer = [looks("c", 30, 200, 300), [op("c", 30, "accepted", 210, 220)]];
    const late = shared([op("a", 10, "accepted", 230, 240)]);
    expect(rulesOf(check(...readers, ...reads, ...writer, late))).toEqual(["accepted-order"]);
    const below = [looks("c", 15, 200, 300), [op("c", 15, "accepted", 210, 220)]];
    expect(rulesOf(check(...readers, ...reads, ...below))).toEqual(["token-order", "accepted-order"]);
  });
});

describe("a counted lease", () => {
  const two = [slot(0, 2, looks("a", 10, 0, 100)), slot(1, 2, looks("b", 10, 50, 150))];

  test("is held by as many as its limit allows", () => {
    expect(check(...two).violations).toEqual([]);
  });

  test("is not held by more, each in a slot of its own", () => {
    const report = check(...two, slot(2, 2, looks("c", 10, 60, 70)));
    expect(rulesOf(report)).toEqual(["too-many"]);
    expect(report.violations[0]!.text).toContain("3 of at most 2 were held at 60010000");
    expect(check(...two, slot(2, 2, looks("c", 10, 100.01, 170))).violations).toEqual([]);
  });

  test("is held by as many as the greatest limit among them allows", () => {
    expect(check(...two, slot(2, 3, looks("c", 10, 60, 70))).violations).toEqual([]);
    const after = slot(1, 2, looks("b", 20, 200, 300));
    const [left, more] = [slot(0, 1, looks("a", 20, 200, 300)), slot(2, 2, looks("c", 30, 210, 220))];
    expect(rulesOf(check(left, after, more))).toEqual(["too-many"]);
  });

  test("seen in a single look counts if the others cover all of it", () => {
    expect(rulesOf(check(...two, slot(2, 2, looks("c", 10, { at: 60, took: 30 }))))).toEqual(["too-many"]);
    expect(check(...two, slot(2, 2, looks("c", 10, { at: 60, took: 50 }))).violations).toEqual([]);
  });

  test("gives each slot to one at a time", () => {
    expect(rulesOf(check(...two, slot(1, 2, looks("c", 20, 120, 130))))).toEqual(["overlap"]);
  });
});

test("the lines of a tenure agree on its form", () => {
  const reader = shared(looks("a", 10, 0));
  for (const other of [looks("a", 10, 5), slot(0, 2, shared(looks("a", 10, 5)))]) {
    const inPool = changed(other, { resource: "r" });
    expect(() => check(reader, inPool)).toThrow(/all.journal:3: mode, pool or limit differ/);
  }
  expect(() => check(reader, [op("a", 10, "accepted", 1, 2)])).toThrow(/differ/);
  expect(() => check(reader, [release("a", 10, 5)])).toThrow(/differ/);
  expect(check(looks("a", 10, 0), changed(looks("a", 10, 5), { mode: "exclusive" })).violations).toEqual([]);
});
