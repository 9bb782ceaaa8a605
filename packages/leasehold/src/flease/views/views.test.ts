import { describe, expect, test } from "vitest";
import {
  ProposerBench,
  acquireOf,
  ask,
  at,
  ballot,
  benchSettings,
  readyAcceptor,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import { cellsOf } from "./joint-cells.js";
import { Kind } from "../protocol/message.js";
import { excludesQuorum, isQuorum } from "../protocol/quorum.js";
import { membersMax } from "../protocol/settings.js";
import {
  firstView,
  jointView,
  stampMax,
  viewAfter,
  viewAtFirstStart,
  viewNumberMax,
  votersOf,
} from "./view.js";
import { Views } from "./views.js";
import type { KeptView, Membership } from "./view.js";

/** Changing the members (section 3.14). ε = 10 ms, the longest lease is 1000 ms, so a full wait is 1030. */

const ids = ["a", "b", "c", "d"];
const settings = benchSettings({ members: ids });
const abc: Membership = { members: ["a", "b", "c"], cellSize: 3 };
const abd: Membership = { members: ["a", "b", "d"], cellSize: 3 };
const all: Membership = { members: ids, cellSize: 4 };
const first = { ...firstView(settings), ...abc };
const waitMs = settings.waitWallMs;

/** One participant, which records its views when it is asked to store them. */
class Party {
  readonly id: string;
  kept: KeptView;
  views: Views;
  disk = true;

  constructor(id: string, kept: KeptView = { view: first, barrier: 0 }) {
    this.id = id;
    this.kept = kept;
    this.views = this.start(0);
  }

  start(ms: number): Views {
    const keep = (kept: KeptView) => {
      if (this.disk) this.kept = kept;
      return this.disk;
    };
    this.views = new Views(settings, this.id, this.kept, at(ms), keep);
    return this.views;
  }

  hears(other: Party, ms: number): boolean {
    return this.views.hear(other.views.note(), at(ms));
  }

  get number(): number {
    return this.views.view.number;
  }
}

describe("a change of the members", () => {
  test("goes through a joint view to the next, once in every old majority a member has left for a full wait", () => {
    const [a, b, c] = ["a", "b", "c"].map((id) => new Party(id)) as [Party, Party, Party];
    a.views.change(all, at(0));
    expect([a.number, votersOf(a.views.view)]).toEqual([2, ids]);
    b.hears(a, 500);
    expect(a.views.look(at(waitMs))).toBe(false); // One of three: the other two may still decide without it.
    b.views.look(at(waitMs));
    expect(b.views.unsettled()).toEqual(["a", "b", "c"]);
    b.hears(a, waitMs);
    expect([b.views.look(at(500 + waitMs - 1)), b.views.look(at(500 + waitMs))]).toEqual([false, true]);
    expect([b.number, b.views.view.before]).toEqual([3, undefined]);
    expect([c.hears(b, 2_000), c.number, c.views.view.members]).toEqual([true, 3, ids]);
  });

  test("counts the wait on both clocks, from the greatest reading ever", () => {
    const a = new Party("a");
    a.views.change(all, at(0, { hi: 50 }));
    expect(a.views.waitLeftMs(at(waitMs))).toBe(50);
    expect(a.views.waitLeftMs(at(waitMs + 50, { mono: waitMs - 40 }))).toBeCloseTo(
      settings.waitRateMs - waitMs + 40,
    );
    const b = new Party("b");
    b.views.look(at(0, { hi: 5_000 }));
    b.views.change(all, at(10)); // The clock was found at fault and has taken a new anchor.
    expect(b.views.waitLeftMs(at(10 + waitMs))).toBe(4_990);
  });

  test("lets fewer members be late where cells are small: two of five may be a majority of a cell of three", () => {
    const five = { members: ["a", "b", "c", "d", "e"], cellSize: 3 };
    const begin: KeptView = { view: { ...first, ...five }, barrier: 0 };
    const parties = five.members.map((id) => new Party(id, begin));
    const [a] = parties as [Party];
    a.views.change({ ...five, members: ids }, at(0));
    for (const [index, party] of parties.slice(1, 4).entries()) {
      party.hears(a, 0);
      party.views.look(at(waitMs));
      a.hears(party, waitMs);
      a.views.look(at(waitMs));
      expect([index, a.number]).toEqual([index, index === 2 ? 3 : 2]);
    }
  });

  test("has a different stamp for each member that may begin it, which fits into 32 bits even for the last number", () => {
    const members = Array.from({ length: membersMax }, (_, index) => `m${index}`).sort();
    const last = { ...first, members, number: viewNumberMax - 2, stamp: viewNumberMax - 2 };
    const stamps = members.map((by) => viewAfter(jointView(last, last, by)).stamp);
    expect(new Set(stamps).size).toBe(membersMax);
    expect(stamps.filter((stamp) => stamp > stampMax || stamp >>> 0 !== stamp)).toEqual([]);
    const a = new Party("a", { view: { ...first, number: viewNumberMax - 2 }, barrier: 0 });
    expect(a.views.whyNoChange(all)).toBeUndefined();
    const b = new Party("a", { view: { ...first, number: viewNumberMax - 1 }, barrier: 0 });
    expect(b.views.whyNoChange(all)).toContain("is the last that there can be");
  });

  test("is refused while another is in progress, for more than one member, and when nothing changes", () => {
    const a = new Party("a");
    expect(a.views.whyNoChange({ members: ["a", "d", "e"], cellSize: 3 })).toBe("one change at a time");
    expect(a.views.whyNoChange(abc)).toBe("nothing changes");
    expect(a.views.whyNoChange({ ...abc, cellSize: 4 })).toBe("no cells of 4 among 3");
    expect(a.views.whyNoChange(abd)).toBeUndefined();
    a.views.change(abd, at(0));
    expect(a.views.whyNoChange(all)).toBe("another change is under way");
    expect(new Party("d").views.whyNoChange(abd)).toBe("d is no member of the present view");
  });
});

describe("the view of a participant", () => {
  test("never goes back, whatever others send, not even by a restart", () => {
    const [a, b] = [new Party("a"), new Party("b")];
    a.views.change(all, at(0));
    expect([a.hears(b, 10), a.number]).toEqual([false, 2]);
    expect(a.start(20).view.number).toBe(2);
    expect(a.views.waitLeftMs(at(20))).toBe(waitMs); // It may have forgotten when it entered.
  });

  test("is the first of two with the same number", () => {
    const [a, b] = [new Party("a"), new Party("b")];
    a.views.change(all, at(0));
    b.views.change(abd, at(0));
    expect(a.views.view.stamp).not.toBe(b.views.view.stamp);
    expect([a.hears(b, 10), b.hears(a, 10)]).toEqual([false, false]);
    b.views.look(at(waitMs));
    a.hears(b, waitMs);
    expect(a.views.unsettled()).toEqual(["a", "b", "c"]); // A member that left the previous view for another one is not in ours.
  });

  test("stays as it is when a new one cannot be stored", () => {
    const [a, b] = [new Party("a"), new Party("b")];
    b.disk = false;
    a.views.change(all, at(0));
    expect([b.views.change(all, at(0)), b.number, b.views.mayVote]).toEqual([false, 1, true]);
    // It knows that its view is not the newest, so it has no vote until it can enter the newer one.
    expect([b.hears(a, 0), b.number, b.views.mayVote]).toEqual([false, 1, false]);
    b.disk = true;
    expect([b.hears(a, 0), b.number, b.views.mayVote]).toEqual([true, 2, true]);
  });

  test("in a new cluster gives a vote once a full wait is over and it is stored, and none if the cluster isn't new", () => {
    const [a, b] = [new Party("a"), new Party("b", viewAtFirstStart(first, "new"))];
    expect([b.views.mayVote, b.views.isLearner, b.views.whyNoChange(all)]).toEqual([
      false,
      false,
      "b has no vote",
    ]);
    b.views.look(at(waitMs - 1));
    expect([b.views.mayVote, b.kept.isFirst]).toEqual([false, true]);
    b.disk = false;
    b.views.look(at(waitMs));
    expect(b.views.mayVote).toBe(false);
    b.disk = true;
    b.views.look(at(waitMs));
    expect([b.views.mayVote, b.kept.isFirst]).toEqual([true, undefined]);
    // Another member discovers during its wait that a file was lost: it was in views that it does not know
    // of.
    const c = new Party("c", viewAtFirstStart(first, "new"));
    a.views.change(all, at(0));
    expect([c.hears(a, waitMs - 1), c.number, c.views.mayVote, c.views.isLearner]).toEqual([
      true,
      2,
      false,
      true,
    ]);
    expect(c.views.notice).toContain("file was lost");
    expect([c.start(0).mayVote, c.number]).toEqual([false, 2]);
  });

  test("gives no vote to an uninvited member, and to an invited one in later views that include it", () => {
    const [a, d] = [new Party("a"), new Party("d", viewAtFirstStart(first, "existing"))];
    d.views.look(at(waitMs));
    expect([d.views.mayVote, d.views.isLearner, d.views.notice]).toEqual([false, true, undefined]);
    d.disk = false;
    expect(d.views.invite(2)).toBe(false);
    d.disk = true;
    expect([d.views.invite(1), d.views.invite(2), d.views.mayVote]).toEqual([false, true, false]);
    d.start(0);
    a.views.change(all, at(0));
    expect([d.hears(a, 0), d.views.mayVote, d.views.isLearner]).toEqual([true, true, false]);
    // The file is lost. Notes from others don't restore the vote before a view without this member has
    // existed.
    d.kept = viewAtFirstStart(first, "existing");
    d.start(0);
    expect([d.hears(a, 0), d.views.mayVote, d.views.invite(4)]).toEqual([true, false, false]);
    expect(d.views.notice).toContain("file was lost");
    const without = new Party("a", { view: { ...viewAfter(a.views.view), ...abc }, barrier: 0 });
    expect([d.hears(without, 0), d.views.invite(4), d.views.mayVote]).toEqual([true, true, false]);
  });

  test("bars ballots that may have been promised before, so that tokens rise even when quorums don't intersect", () => {
    const a = new Party("a", { view: { ...first, members: ["a"], cellSize: 1 }, barrier: 0 });
    a.views.change({ members: ["a", "b"], cellSize: 2 }, at(100));
    expect(a.views.barrier).toBe(0);
    a.views.look(at(100 + waitMs));
    expect(a.number).toBe(3);
    expect(a.views.barrier).toBeGreaterThan(ballot(111)); // ε and a millisecond above its clock when it left.
    expect(a.views.barrier).toBeLessThan(ballot(waitMs));
    const late = new Party("b", { view: first, barrier: ballot(5_000) });
    late.hears(a, 2_000);
    expect(late.views.barrier).toBe(ballot(5_000));
  });
});

test("a joint quorum has a majority of the resource's old cell and one of its new cell", () => {
  const cells = cellsOf(jointView(first, abd, "a"), ids);
  const cell = cells.of("r");
  expect([cell.members, cells.of("r") === cells.of("s")]).toEqual([[0, 1, 2, 3], true]);
  const set = (...members: number[]) => members.reduce((bits, member) => bits | (1 << member), 0);
  expect(isQuorum(cell, set(0, 1))).toBe(true);
  expect(isQuorum(cell, set(1, 2))).toBe(false); // Only one of a, b and d.
  expect(isQuorum(cell, set(1, 3))).toBe(false); // Only one of a, b and c.
  expect(isQuorum(cell, set(1, 2, 3))).toBe(true);
  expect([excludesQuorum(cell, set(2)), excludesQuorum(cell, set(1, 2))]).toEqual([false, true]);
  expect([excludesQuorum(cell, set(2, 3)), cell.majority]).toEqual([false, 3]);
});

test("growing from 3 members to 30 with cells of 3 moves only the resources that must move", () => {
  const thirty = Array.from({ length: 30 }, (_, index) => `m${String(index).padStart(2, "0")}`);
  const resources = Array.from({ length: 2_000 }, (_, index) => `orders/${index}`);
  const membersOf = (count: number) => {
    const cells = cellsOf({ ...first, members: thirty.slice(0, count), cellSize: 3 }, thirty);
    return resources.map((resource) => cells.of(resource).members);
  };
  let before = membersOf(3);
  for (let count = 4; count <= 30; count += 1) {
    const after = membersOf(count);
    const moved = resources.filter((_, index) => before[index]!.join() !== after[index]!.join());
    // Exactly the resources whose cell includes the new member: 3 of `count`, on average.
    const needed = resources.filter((_, index) => after[index]!.includes(count - 1));
    expect(moved).toEqual(needed);
    expect(moved.length / resources.length).toBeCloseTo(3 / count, 1);
    before = after;
  }
});

describe("an acceptor in another view", () => {
  test("keeps its entries, and refuses requests of the previous view and ballots up to the barrier", () => {
    const acceptor = readyAcceptor();
    ask(acceptor, writeOf("p.1", 0, 0, 500), at(0));
    acceptor.enterView(2, ballot(50));
    expect(wordOf(ask(acceptor, writeOf("p.1", 0, 1, 600), at(100)))).toBe("otherView");
    expect(wordOf(ask(acceptor, { ...acquireOf("q.1", 100, 600), view: 2 }, at(100)))).toBe("held");
    expect(wordOf(ask(acceptor, { ...writeOf("p.1", 0, 1, 600), view: 2 }, at(100)))).toBe("promised");
    expect(ask(acceptor, { ...acquireOf("p.1", 40, 600), view: 2 }, at(100))!.promised).toBe(ballot(50));
    expect(wordOf(ask(acceptor, { ...acquireOf("p.1", 100, 600), view: 2 }, at(100)))).toBe("ack");
  });
});

describe("a proposer in another view", () => {
  const cells = cellsOf(viewAfter(jointView(first, all, "a")), ids);

  test("restarts operations in progress, and counts no acknowledgement from the previous view", () => {
    const bench = new ProposerBench("p.1", settings);
    bench.begin(0, true);
    const before = bench.last;
    bench.ack(0, 5);
    bench.proposer.enterView(3, cells, at(10));
    expect(bench.kinds).toEqual(["acquire", "release", "read"]);
    expect(bench.last).toMatchObject({ kind: Kind.read, view: 3, number: ballot(10) });
    for (const from of [1, 2, 3]) bench.ack(from, 11, before);
    for (const from of [0, 1, 2]) bench.reply(from, Kind.promise, 12, { view: 1 });
    expect([bench.kinds.length, bench.events]).toEqual([3, []]);
    for (const from of [0, 1, 2]) bench.promise(from, 13);
    for (const from of [0, 1, 2]) bench.ack(from, 14);
    expect(bench.events).toEqual(["acquired"]);
  });

  test("keeps its hold, and renews it in two phases the next time", () => {
    const bench = new ProposerBench("p.1", settings);
    const instance = bench.hold(0);
    bench.ack(2, 0);
    bench.proposer.enterView(3, cells, at(10));
    expect([bench.proposer.isHeld(instance, at(20)), instance.tokenNumber]).toEqual([true, ballot(0)]);
    bench.proposer.renew(instance, 500, at(20));
    expect(bench.last.kind).toBe(Kind.read);
  });
});
