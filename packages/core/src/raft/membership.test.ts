import { describe, expect, test } from "vitest";
import { Lab, Single } from "../../../../test/scenarios/raft-runner/lab.js";
import { changed, Memberships } from "./membership.js";
import { founding, joining } from "./options.js";
import { withFaults } from "../../../../test/planted/switches.js";
import type { ConfigChange, Entry, Membership } from "./types.js";

const nothing = new Uint8Array(0);
const onlyVoters = (...voters: bigint[]): Membership => ({ voters, learners: [] });

function config(index: number, kind: ConfigChange["kind"], member: bigint): Entry {
  return { kind: "config", index, term: 1, change: { kind, member }, data: nothing };
}

describe("thesis 4.1: one member at a time", () => {
  test("each change makes the intended membership, and an impossible one is refused", () => {
    const now: Membership = { voters: [1n, 2n], learners: [3n] };
    expect(changed(now, { kind: "add-voter", member: 4n })).toEqual({ voters: [1n, 2n, 4n], learners: [3n] });
    expect(changed(now, { kind: "add-learner", member: 4n })).toEqual({
      voters: [1n, 2n],
      learners: [3n, 4n],
    });
    expect(changed(now, { kind: "promote", member: 3n })).toEqual({ voters: [1n, 2n, 3n], learners: [] });
    expect(changed(now, { kind: "remove", member: 3n })).toEqual({ voters: [1n, 2n], learners: [] });
    expect(changed(now, { kind: "remove", member: 2n })).toEqual({ voters: [1n], learners: [3n] });
    for (const change of [
      { kind: "add-voter", member: 1n },
      { kind: "add-voter", member: 3n },
      { kind: "add-learner", member: 2n },
      { kind: "promote", member: 1n },
      { kind: "promote", member: 4n },
      { kind: "remove", member: 4n },
    ] as const)
      expect(changed(now, change)).toBeUndefined();
    expect(changed(onlyVoters(1n), { kind: "remove", member: 1n })).toBeUndefined();
  });

  test("a server uses the newest membership in its log, and returns to the previous one when that entry is replaced", () => {
    const memberships = new Memberships(1, onlyVoters(1n));
    memberships.append(config(4, "add-voter", 2n));
    memberships.append(config(7, "add-voter", 3n));
    expect(memberships.current.voters).toEqual([1n, 2n, 3n]);
    expect(memberships.at(6).voters).toEqual([1n, 2n]);
    memberships.compact(5);
    expect(memberships.at(5).voters).toEqual([1n, 2n]);
    memberships.truncate(7);
    expect(memberships.current.voters).toEqual([1n, 2n]);
    expect(memberships.currentIndex).toBe(4);
  });

  test("a new member counts as soon as the change is in the log", () => {
    const lab = Lab.of(1);
    lab.elect(1);
    lab.add(2n);
    expect(lab.change(1, "add-voter", 2)).toBe("accepted");
    expect(lab.status(1)).toMatchObject({ commit: 2, lastIndex: 3, membership: { voters: [1n, 2n] } });
    lab.deliver();
    expect(lab.status(1).commit).toBe(3);
    expect(lab.status(2)).toMatchObject({ commit: 3, membership: { voters: [1n, 2n] } });
  });

  test("a change replaced by another leader's entries is undone", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.pass(1);
    lab.partition([1], [2, 3]);
    lab.change(1, "add-voter", 4);
    expect(lab.status(1).membership.voters).toContain(4n);
    lab.deliver();
    lab.elect(2);
    lab.heal();
    lab.pass(3);
    expect(lab.status(1)).toMatchObject({ leader: 2n, membership: onlyVoters(1n, 2n, 3n) });
  });

  test("a second change is refused while one is uncommitted", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.partition([1], [2, 3]);
    expect(lab.change(1, "add-learner", 4)).toBe("accepted");
    expect(lab.change(1, "add-learner", 5)).toBe("change-pending");
    lab.deliver();
    lab.heal();
    lab.pass(2);
    expect(lab.change(1, "add-learner", 5)).toBe("accepted");
  });

  test("a change is refused before an entry of the leader's own term is committed (the bug of 2015)", () => {
    const lab = Lab.of(3);
    lab.tick(2, 10);
    lab.tick(3, 10);
    lab.network = [];
    lab.tick(1, 10);
    lab.deliver((message) => message.kind !== "append");
    expect(lab.status(1).role).toBe("leader");
    expect(lab.change(1, "add-voter", 4)).toBe("change-pending");
    lab.pass(2);
    expect(lab.change(1, "add-voter", 4)).toBe("accepted");
  });

  // The scenario of Ongaro's message of July 2015. S1 of four servers adds S5 and is cut off. S2 removes S1
  // and commits that with a majority of the other three. S1 comes back and commits with S5 and one more of
  // its own five.
  function bugOf2015(): Lab {
    const lab = Lab.of(4);
    lab.add(5n, joining());
    lab.elect(1);
    lab.pass(1);
    lab.partition([1], [2, 3, 4, 5]);
    lab.change(1, "add-voter", 5);
    lab.network = [];
    for (const id of [3, 4]) lab.tick(id, 10);
    lab.network = [];
    lab.tick(2, 10);
    lab.deliver((message) => message.kind !== "append");
    expect(lab.status(2)).toMatchObject({ role: "leader", term: 3 });
    return lab;
  }

  test("the bug of 2015: the second leader has to commit something first", () => {
    const lab = bugOf2015();
    expect(lab.change(2, "remove", 1)).toBe("change-pending");
  });

  test("planted: without that rule two majorities do not overlap, and committed entries are lost", () => {
    withFaults({ changeBeforeOwnCommit: true }, () => {
      const lab = bugOf2015();
      expect(lab.change(2, "remove", 1)).toBe("accepted");
      // S2 and S3 are a majority of 2, 3 and 4.
      lab.tick(2, 1);
      lab.deliver((message) => message.to === 3n || message.from === 3n);
      lab.tick(2, 1);
      lab.deliver((message) => message.to === 3n || message.from === 3n);
      expect(lab.applied(2)).toContain("3:remove 1");
      // S1, S4 and S5 are a majority of 1 to 5, and none of them knows of the removal.
      lab.server(2).crash();
      lab.server(3).crash();
      lab.heal();
      for (let count = 0; count < 4; count += 1) lab.elect(1);
      lab.pass(3);
      expect(lab.status(1).role).toBe("leader");
      expect(lab.applied(1)).toContain("2:add-voter 5");
    });
  });

  test("planted: a second change is accepted while one is not committed", () => {
    withFaults({ twoChangesAtOnce: true }, () => {
      const lab = Lab.of(1);
      lab.elect(1);
      lab.change(1, "add-voter", 2);
      expect(lab.change(1, "add-voter", 3)).toBe("accepted");
    });
  });
});

describe("thesis 4.2.1: learners", () => {
  test("a learner gets the log and does not count in majorities; once promoted, it votes", () => {
    const lab = Lab.of(1);
    lab.elect(1);
    lab.add(2n);
    lab.change(1, "add-learner", 2);
    lab.deliver();
    lab.partition([1], [2]);
    expect(lab.propose(1, "x")).toBe(true);
    expect(lab.applied(1)).toContain("2:x");
    lab.tick(2, 30);
    expect(lab.status(2)).toMatchObject({ role: "follower", leader: 0n });
    lab.network = [];
    lab.heal();
    lab.pass(3);
    expect(lab.applied(2)).toContain("2:x");
    expect(lab.change(1, "promote", 2)).toBe("accepted");
    lab.deliver();
    lab.pass(1);
    expect(lab.status(2).membership).toEqual(onlyVoters(1n, 2n));
    lab.partition([1], [2]);
    lab.propose(1, "y");
    lab.deliver();
    expect(lab.applied(1)).not.toContain("2:y");
  });

  test("a learner that is far behind does not become a voter", () => {
    const lab = Lab.of(1);
    lab.elect(1);
    lab.change(1, "add-learner", 2);
    for (let count = 0; count < 1_100; count += 1) lab.propose(1, "x");
    expect(lab.change(1, "promote", 2)).toBe("learner-behind");
  });
});

describe("thesis 4.2.2: removing the leader", () => {
  test("the leader does not count itself, and steps down when its removal is committed; the others continue", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.pass(1);
    lab.partition([1, 2], [3]);
    expect(lab.change(1, "remove", 1)).toBe("accepted");
    lab.deliver();
    // The leader and one of the other two: no majority of the other two.
    expect(lab.status(1)).toMatchObject({ role: "leader", commit: 2 });
    lab.heal();
    lab.pass(2);
    expect(lab.status(1)).toMatchObject({ role: "follower", commit: 3 });
    lab.pass(40);
    expect(lab.status(1).role).toBe("follower");
    lab.elect(2);
    expect(lab.propose(2, "on")).toBe(true);
    lab.deliver();
    expect(lab.applied(3).at(-1)).toMatch(/:on$/);
  });

  test("the removed leader may stand until its removal is committed: perhaps no other server has the change", () => {
    const lab = Lab.of(2);
    lab.elect(1);
    lab.pass(1);
    lab.partition([1], [2]);
    lab.change(1, "remove", 1);
    lab.server(1).crash();
    lab.server(1).start();
    lab.heal();
    lab.elect(2);
    expect(lab.status(2).role).not.toBe("leader");
    lab.elect(1);
    lab.pass(2);
    expect(lab.status(2).membership).toEqual(onlyVoters(2n));
    lab.pass(40);
    expect(lab.status(2).role).toBe("leader");
    expect(lab.status(1).role).toBe("follower");
  });

  test("the last voter cannot be removed", () => {
    const lab = Lab.of(1);
    lab.elect(1);
    expect(lab.change(1, "remove", 1)).toBe("bad-change");
  });
});

describe("thesis 4.2.3: disruptive servers", () => {
  test("a removed server that does not know of its removal cannot disturb servers that hear a leader", () => {
    const lab = Lab.of(4);
    lab.elect(1);
    lab.pass(1);
    lab.partition([1, 2, 3], [4]);
    lab.change(1, "remove", 4);
    lab.deliver();
    lab.pass(2);
    lab.heal();
    lab.pass(100);
    expect(lab.status(4).membership.voters).toContain(4n);
    expect(lab.status(1)).toMatchObject({ role: "leader", term: 2 });
    expect(lab.status(1).followers.map(({ id }) => id)).toEqual([2n, 3n]);
  });

  test("late answers from a removed server do not count", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.pass(1);
    lab.change(1, "remove", 3);
    lab.deliver();
    const before = lab.status(1).droppedMessages;
    const answer = { kind: "append-answer", from: 3n, to: 1n, term: 2, rejected: false, index: 2 } as const;
    lab.server(1).receive({ message: { ...answer, hintIndex: 0, hintTerm: 0 }, history: undefined });
    expect(lab.status(1).droppedMessages).toBe(before + 1);
  });
});

describe("thesis 3.10: leadership transfer", () => {
  test("the target is brought up to date, stands at once, and wins although the others hear a leader", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.pass(1);
    lab.partition([1], [2]);
    lab.propose(1, "x");
    lab.deliver();
    lab.heal();
    expect(lab.server(1).act((raft) => raft.transferLeader(2n))).toEqual({ accepted: true });
    expect(lab.status(1).transferTo).toBe(2n);
    expect(lab.raft(1).propose([nothing])).toEqual({ accepted: false, reason: "transferring" });
    lab.pass(2);
    expect(lab.status(2)).toMatchObject({ role: "leader", term: 3 });
    expect(lab.status(1)).toMatchObject({ role: "follower", leader: 2n });
    expect(lab.applied(2)).toContain("2:x");
  });

  test("a transfer is cancelled after an election timeout if its target does not stand", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.pass(1);
    lab.server(2).crash();
    lab.server(1).act((raft) => raft.transferLeader(2n));
    lab.pass(9);
    expect(lab.raft(1).propose([nothing]).accepted).toBe(false);
    lab.pass(1);
    expect(lab.raft(1).propose([nothing]).accepted).toBe(true);
  });

  test("a transfer to a learner or a stranger is refused", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.pass(1);
    lab.change(1, "add-learner", 4);
    expect(lab.raft(1).transferLeader(4n)).toEqual({ accepted: false, reason: "bad-change" });
    expect(lab.raft(1).transferLeader(9n)).toEqual({ accepted: false, reason: "bad-change" });
    expect(lab.raft(1).transferLeader(1n)).toEqual({ accepted: true });
    expect(lab.status(1).transferTo).toBe(0n);
    expect(lab.raft(2).transferLeader(3n)).toEqual({ accepted: false, reason: "not-leader" });
  });

  test("a learner or a stranger that is asked to stand does not", () => {
    const one = new Single(1n, { ...founding([2n]), hardState: { term: 2, votedFor: 0n, commit: 1 } });
    one.exchange({ kind: "heartbeat", from: 2n, to: 1n, term: 2, commit: 1, round: 0, transfersOver: 0 });
    expect(one.exchange({ kind: "timeout-now", from: 2n, to: 1n, term: 2, transfer: 1 })).toEqual([]);
    expect(one.raft.status()).toMatchObject({ role: "follower", term: 2 });
  });

  test("only the leader of its term can ask a server to stand", () => {
    const stood = (from: bigint, term: number) => {
      const one = new Single(1n, {
        ...founding([1n, 2n, 3n]),
        hardState: { term: 2, votedFor: 0n, commit: 1 },
      });
      one.exchange({ kind: "heartbeat", from: 2n, to: 1n, term: 2, commit: 1, round: 0, transfersOver: 0 });
      return one.exchange({ kind: "timeout-now", from, to: 1n, term, transfer: 1 }).length > 0;
    };
    const all = () => [stood(2n, 2), stood(3n, 2), stood(9n, 2), stood(3n, 3)];
    expect(all()).toEqual([true, false, false, false]);
    expect(withFaults({ anybodyTransfers: true }, all)).toEqual([true, true, true, true]);
  });
});
