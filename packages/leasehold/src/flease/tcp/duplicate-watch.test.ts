import { describe, expect, test } from "vitest";
import { DUPLICATE_NOTICE_MS, DuplicateWatch } from "./duplicate-watch.js";

const lapseMs = 100;
const nobody = new Map<string, string>();

/**
 * c of three or five members. Some of the others are connected at time 0 and silent from then on. c is ready
 * when the wait is over.
 */
function watchOf(members: number, ...connected: string[]): DuplicateWatch {
  const watch = new DuplicateWatch({ members, lapseMs });
  for (const id of connected) meet(watch, id, 0);
  watch.needsRecoveryWait(0, false);
  return watch;
}

function meet(watch: DuplicateWatch, id: string, nowMs: number, knewUs = false, tells = nobody): string[] {
  watch.linked(id, `${id}1`);
  watch.confirmed(id, nowMs);
  return watch.connectionsOf(id, tells, knewUs);
}

describe("a process votes", () => {
  test("when a majority has confirmed it and it has been silent since, and not before", () => {
    const watch = new DuplicateWatch({ members: 3, lapseMs });
    expect([watch.votes(0), watch.needsRecoveryWait(0, false)]).toEqual([false, true]);
    watch.linked("a", "a1");
    expect([watch.needsRecoveryWait(1, false), watch.votes(1)]).toEqual([true, false]);
    watch.confirmed("a", 2);
    expect([watch.needsRecoveryWait(3, false), watch.votes(3)]).toEqual([true, true]);
    expect(watch.needsRecoveryWait(4, false)).toBe(false);
    expect([watch.isDuplicate, watch.notice(4)]).toEqual([false, undefined]);
  });

  test("at once when it is the only member", () => {
    const watch = watchOf(1);
    expect([watch.votes(1e9), watch.needsRecoveryWait(1e9, false)]).toEqual([true, false]);
  });

  test("while the confirmations of a majority are valid, and again when they arrive over the same connections", () => {
    const watch = watchOf(3, "a");
    expect([watch.votes(lapseMs), watch.votes(lapseMs + 1)]).toEqual([true, false]);
    expect(watch.needsRecoveryWait(lapseMs + 1, true)).toBe(false);
    watch.confirmed("a", 150);
    expect(watch.votes(200)).toBe(true);
    watch.unlinked("a");
    expect(watch.votes(201)).toBe(false);
  });

  test("in a cluster of five with two others, but not with one", () => {
    const watch = watchOf(5, "a", "b");
    watch.confirmed("a", 90);
    expect([watch.votes(lapseMs), watch.votes(lapseMs + 1)]).toEqual([true, false]);
  });

  test("when it is confirmed by members that were connected while it voted", () => {
    const watch = watchOf(3, "a");
    meet(watch, "b", 10);
    watch.needsRecoveryWait(11, false);
    watch.unlinked("a");
    // The wait was not over, and b may have confirmed another process until it was connected.
    expect(watch.votes(12)).toBe(false);
    const voting = watchOf(3, "a");
    meet(voting, "b", 10);
    voting.needsRecoveryWait(11, true);
    voting.unlinked("a");
    expect(voting.votes(12)).toBe(true);
  });
});

describe("a process that was cut off from the others", () => {
  test("continues at once when so many members report no other process that none can have voted", () => {
    const watch = watchOf(3, "a", "b");
    for (const id of ["a", "b"]) watch.unlinked(id);
    expect(watch.needsRecoveryWait(500, true)).toBe(false);
    meet(watch, "a", 1_000, true);
    expect([watch.needsRecoveryWait(1_001, true), watch.votes(1_001)]).toEqual([false, false]);
    meet(watch, "b", 1_010, true);
    expect([watch.needsRecoveryWait(1_011, true), watch.votes(1_011)]).toEqual([false, true]);
  });

  test("waits again when they cannot", () => {
    const watch = watchOf(3, "a", "b");
    for (const id of ["a", "b"]) watch.unlinked(id);
    meet(watch, "a", 1_000, true);
    meet(watch, "b", 1_000, false);
    expect([watch.needsRecoveryWait(1_001, true), watch.votes(1_001)]).toEqual([false, false]);
    for (const id of ["a", "b"]) watch.confirmed(id, 1_100);
    expect([watch.needsRecoveryWait(1_102, true), watch.votes(1_102)]).toEqual([true, true]);
  });
});

describe("a process that was refused", () => {
  test("is silent until each member that refused it accepts it", () => {
    const watch = watchOf(3, "a");
    watch.refusedBy("b", "another is c");
    expect([watch.votes(1), watch.isDuplicate, watch.notice(1)]).toEqual([false, true, "another is c"]);
    watch.confirmed("a", 1e9);
    expect([watch.needsRecoveryWait(1e9, true), watch.votes(1e9)]).toEqual([true, false]);
    meet(watch, "b", 1e9);
    expect([watch.needsRecoveryWait(1e9, true), watch.votes(1e9), watch.isDuplicate]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("a member continues when a duplicate of it was refused, and its status reports that for a while", () => {
    const watch = watchOf(3, "a");
    watch.duplicateSeen("another at x", 0);
    expect([watch.votes(1), watch.notice(DUPLICATE_NOTICE_MS - 1)]).toEqual([true, "another at x"]);
    expect(watch.notice(DUPLICATE_NOTICE_MS)).toBeUndefined();
  });
});

describe("a member", () => {
  test("refuses a process whose id is connected elsewhere as another, until that one is reported gone", () => {
    const watch = new DuplicateWatch({ members: 3, lapseMs });
    meet(watch, "b", 0, false, new Map([["c", "c1"]]));
    expect(watch.objection("c", "c2")).toMatch(
      /another process is the member "c" already, connected with "b"/,
    );
    expect(watch.objection("c", "c1")).toBeUndefined();
    watch.connectionsOf("b", nobody, false);
    expect(watch.objection("c", "c2")).toBeUndefined();
    meet(watch, "c", 1);
    expect(watch.connectionsOf("b", new Map([["c", "c2"]]), false)).toEqual(["c"]);
    expect(watch.connectionsOf("b", new Map([["c", "c1"]]), false)).toEqual([]);
  });

  test("remembers which process was connected before under an id", () => {
    const watch = new DuplicateWatch({ members: 3, lapseMs });
    expect(watch.linked("c", "c1")).toBe("");
    watch.unlinked("c");
    expect([watch.linked("c", "c2"), watch.linked("c", "c2"), watch.connected]).toEqual([
      "c1",
      "c2",
      { c: "c2" },
    ]);
  });
});
