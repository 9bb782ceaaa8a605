import { describe, expect, test } from "vitest";
import { RIVAL_NOTICE_MS, TwinWatch } from "./twin-watch.js";

const lapseMs = 100;
const nobody = new Map<string, string>();

/** c of three or five members, connected with some at time 0 and silent from then on; ready when the wait is over. */
function watchOf(members: number, ...connected: string[]): TwinWatch {
  const twins = new TwinWatch({ members, lapseMs });
  for (const id of connected) meet(twins, id, 0);
  twins.mustBeSilent(0, false);
  return twins;
}

function meet(twins: TwinWatch, id: string, nowMs: number, knewUs = false, tells = nobody): string[] {
  twins.linked(id, `${id}1`);
  twins.confirmed(id, nowMs);
  return twins.told(id, tells, knewUs);
}

describe("a process votes", () => {
  test("when a majority has confirmed it and it has been silent since, and not before", () => {
    const twins = new TwinWatch({ members: 3, lapseMs });
    expect([twins.votes(0), twins.mustBeSilent(0, false)]).toEqual([false, true]);
    twins.linked("a", "a1");
    expect([twins.mustBeSilent(1, false), twins.votes(1)]).toEqual([true, false]);
    twins.confirmed("a", 2);
    expect([twins.mustBeSilent(3, false), twins.votes(3)]).toEqual([true, true]);
    expect(twins.mustBeSilent(4, false)).toBe(false);
    expect([twins.isTwin, twins.notice(4)]).toEqual([false, undefined]);
  });

  test("at once when it is the only member", () => {
    const twins = watchOf(1);
    expect([twins.votes(1e9), twins.mustBeSilent(1e9, false)]).toEqual([true, false]);
  });

  test("as long as the confirmations of a majority last, and again when they come by the same connections", () => {
    const twins = watchOf(3, "a");
    expect([twins.votes(lapseMs), twins.votes(lapseMs + 1)]).toEqual([true, false]);
    expect(twins.mustBeSilent(lapseMs + 1, true)).toBe(false);
    twins.confirmed("a", 150);
    expect(twins.votes(200)).toBe(true);
    twins.unlinked("a");
    expect(twins.votes(201)).toBe(false);
  });

  test("in five with two others, and with one not", () => {
    const twins = watchOf(5, "a", "b");
    twins.confirmed("a", 90);
    expect([twins.votes(lapseMs), twins.votes(lapseMs + 1)]).toEqual([true, false]);
  });

  test("by those that were connected while it voted", () => {
    const twins = watchOf(3, "a");
    meet(twins, "b", 10);
    twins.mustBeSilent(11, false);
    twins.unlinked("a");
    // The wait was not over, and b may have confirmed another until it was connected.
    expect(twins.votes(12)).toBe(false);
    const voting = watchOf(3, "a");
    meet(voting, "b", 10);
    voting.mustBeSilent(11, true);
    voting.unlinked("a");
    expect(voting.votes(12)).toBe(true);
  });
});

describe("a process that was cut off from the others", () => {
  test("goes on at once when so many say that they had no other that nobody else can have voted", () => {
    const twins = watchOf(3, "a", "b");
    for (const id of ["a", "b"]) twins.unlinked(id);
    expect(twins.mustBeSilent(500, true)).toBe(false);
    meet(twins, "a", 1_000, true);
    expect([twins.mustBeSilent(1_001, true), twins.votes(1_001)]).toEqual([false, false]);
    meet(twins, "b", 1_010, true);
    expect([twins.mustBeSilent(1_011, true), twins.votes(1_011)]).toEqual([false, true]);
  });

  test("waits anew when they cannot say so", () => {
    const twins = watchOf(3, "a", "b");
    for (const id of ["a", "b"]) twins.unlinked(id);
    meet(twins, "a", 1_000, true);
    meet(twins, "b", 1_000, false);
    expect([twins.mustBeSilent(1_001, true), twins.votes(1_001)]).toEqual([false, false]);
    for (const id of ["a", "b"]) twins.confirmed(id, 1_100);
    expect([twins.mustBeSilent(1_102, true), twins.votes(1_102)]).toEqual([true, true]);
  });
});

describe("a process that was refused", () => {
  test("is silent until each that refused it has taken it, however long that is", () => {
    const twins = watchOf(3, "a");
    twins.refusedBy("b", "another is c");
    expect([twins.votes(1), twins.isTwin, twins.notice(1)]).toEqual([false, true, "another is c"]);
    twins.confirmed("a", 1e9);
    expect([twins.mustBeSilent(1e9, true), twins.votes(1e9)]).toEqual([true, false]);
    meet(twins, "b", 1e9);
    expect([twins.mustBeSilent(1e9, true), twins.votes(1e9), twins.isTwin]).toEqual([true, true, false]);
  });

  test("one whose rival was seen goes on, and says so for a while", () => {
    const twins = watchOf(3, "a");
    twins.rivalSeen("another at x", 0);
    expect([twins.votes(1), twins.notice(RIVAL_NOTICE_MS - 1)]).toEqual([true, "another at x"]);
    expect(twins.notice(RIVAL_NOTICE_MS)).toBeUndefined();
  });
});

describe("a member lets in nobody", () => {
  test("whose id is connected elsewhere as another process, until that is told to be over", () => {
    const twins = new TwinWatch({ members: 3, lapseMs });
    meet(twins, "b", 0, false, new Map([["c", "c1"]]));
    expect(twins.objection("c", "c2")).toMatch(
      /another process is the member "c" already, connected with "b"/,
    );
    expect(twins.objection("c", "c1")).toBeUndefined();
    twins.told("b", nobody, false);
    expect(twins.objection("c", "c2")).toBeUndefined();
    meet(twins, "c", 1);
    expect(twins.told("b", new Map([["c", "c2"]]), false)).toEqual(["c"]);
    expect(twins.told("b", new Map([["c", "c1"]]), false)).toEqual([]);
  });

  test("and remembers who was connected before", () => {
    const twins = new TwinWatch({ members: 3, lapseMs });
    expect(twins.linked("c", "c1")).toBe("");
    twins.unlinked("c");
    expect([twins.linked("c", "c2"), twins.linked("c", "c2"), twins.connected]).toEqual([
      "c1",
      "c2",
      { c: "c2" },
    ]);
  });
});
