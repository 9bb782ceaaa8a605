import { describe, expect, test } from "vitest";
import { disk, Lab, log, Single } from "../../../../test/scenarios/raft-runner/lab.js";
import { withFaults } from "../../../../test/planted/switches.js";

const three = [1n, 2n, 3n];

function read(lab: Lab, id: number, number: number): string {
  const answer = lab.server(id).act((raft) => raft.readIndex(number))!;
  return answer.accepted ? "accepted" : answer.reason;
}

describe("thesis 6.4: read-only queries", () => {
  test("a read waits for a round of heartbeats that began after it", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    expect(read(lab, 1, 7)).toBe("accepted");
    expect(lab.reads).toEqual([]);
    lab.deliver();
    expect(lab.reads).toEqual([{ server: 1n, id: 7, index: 2 }]);
  });

  test("concurrent reads share a round", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.server(1).act((raft) => [1, 2, 3].map((id) => raft.readIndex(id)));
    expect(lab.network.map(({ message }) => message)).toMatchObject([
      { kind: "heartbeat", round: 1 },
      { kind: "heartbeat", round: 1 },
    ]);
    lab.deliver();
    expect(lab.reads.map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  test("an answer to an earlier round does not count; an answer to a later round counts for earlier ones", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    read(lab, 1, 1);
    lab.deliver((message) => message.kind !== "heartbeat-answer");
    read(lab, 1, 2);
    const answer = { kind: "heartbeat-answer", from: 2n, to: 1n, term: 2, round: 1, holdMs: 0 } as const;
    lab.server(1).receive({ message: answer, history: undefined });
    expect(lab.reads.map(({ id }) => id)).toEqual([1]);
    lab.server(1).receive({ message: { ...answer, round: 2 }, history: undefined });
    expect(lab.reads.map(({ id }) => id)).toEqual([1, 2]);
    lab.server(1).receive({ message: { ...answer, round: 3 }, history: undefined });
    expect(lab.status(1).droppedMessages).toBe(1);
  });

  test("a lost round is repeated with the next heartbeat", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    read(lab, 1, 1);
    lab.network = [];
    lab.tick(1, 1);
    lab.deliver();
    expect(lab.reads).toHaveLength(1);
  });

  test("a deposed leader that does not know it yet answers nothing", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.partition([1], [2, 3]);
    lab.elect(2);
    lab.propose(2, "newer");
    lab.deliver();
    expect(lab.status(1).role).toBe("leader");
    expect(read(lab, 1, 1)).toBe("accepted");
    lab.pass(30);
    expect(lab.reads).toEqual([]);
    expect(lab.status(1).role).not.toBe("leader");
  });

  test("planted: a deposed leader that answers without a round gives a stale answer", () => {
    withFaults({ readWithoutRound: true }, () => {
      const lab = Lab.of(3);
      lab.elect(1);
      lab.partition([1], [2, 3]);
      lab.elect(2);
      lab.propose(2, "newer");
      lab.deliver();
      read(lab, 1, 1);
      expect(lab.reads[0]!.index).toBeLessThan(lab.status(2).commit);
    });
  });

  test("with three servers, a follower's request completes the majority that a read needs", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    expect([2n, 3n].map((asker) => lab.raft(1).readIndexOfAsker(asker))).toEqual([2, 2]);
    // The leader's own request says nothing about the others, and a stranger has no vote.
    expect([1n, 4n].map((asker) => lab.raft(1).readIndexOfAsker(asker))).toEqual([undefined, undefined]);
    expect(lab.raft(2).readIndexOfAsker(3n)).toBeUndefined();
  });

  function deposedOfFive(): Lab {
    const lab = Lab.of(5);
    lab.elect(1);
    lab.partition([1, 2], [3, 4, 5]);
    lab.elect(3);
    lab.propose(3, "newer");
    lab.deliver();
    return lab;
  }

  test("with five servers it does not: the other three may have another leader", () => {
    const lab = deposedOfFive();
    expect(lab.raft(1).readIndexOfAsker(2n)).toBeUndefined();
  });

  test("planted: two of five answer a read, and the answer is stale", () => {
    withFaults({ askerOfFiveSuffices: true }, () => {
      const lab = deposedOfFive();
      expect(lab.raft(1).readIndexOfAsker(2n)).toBeLessThan(lab.status(3).commit);
    });
  });

  // Server 1 is elected, and has its predecessor's committed entries, but does not know how many are
  // committed.
  function newLeader(): Lab {
    const lab = new Lab({
      1: disk(three, log(2, 2)),
      2: disk(three, log(2, 2), { commit: 3 }),
      3: disk(three, log(2)),
    });
    lab.tick(2, 10);
    lab.tick(3, 10);
    lab.network = [];
    lab.tick(1, 10);
    lab.deliver((message) => message.kind !== "append");
    expect(lab.status(1)).toMatchObject({ role: "leader", commit: 1 });
    return lab;
  }

  test("a read waits until the leader has committed an entry of its term", () => {
    const lab = newLeader();
    expect(read(lab, 1, 1)).toBe("accepted");
    expect(lab.raft(1).readIndexOfAsker(2n)).toBeUndefined();
    expect(lab.network).toEqual([]);
    lab.pass(2);
    expect(lab.reads).toEqual([{ server: 1n, id: 1, index: 4 }]);
  });

  test("planted: a leader that answers earlier reads older state than was shown before", () => {
    withFaults({ readBeforeOwnCommit: true }, () => {
      const lab = newLeader();
      read(lab, 1, 1);
      lab.deliver();
      expect(lab.reads[0]!.index).toBeLessThan(lab.status(2).commit);
    });
  });

  test("a single server needs no round, a follower refuses, and the queue is bounded", () => {
    const alone = Lab.of(1);
    alone.elect(1);
    read(alone, 1, 1);
    expect(alone.reads).toEqual([{ server: 1n, id: 1, index: 2 }]);
    const lab = Lab.of(3, { pendingReadsMax: 2 });
    lab.elect(1);
    expect(read(lab, 2, 1)).toBe("not-leader");
    expect([1, 2, 3].map((id) => read(lab, 1, id))).toEqual(["accepted", "accepted", "overloaded"]);
    lab.deliver();
    expect(read(lab, 1, 4)).toBe("accepted");
  });

  test("unconfirmed reads are not answered in a later term", () => {
    const one = new Single(1n, disk(three, []));
    one.tick(10);
    one.exchange({ kind: "pre-vote-answer", from: 2n, to: 1n, term: 2, granted: true });
    one.exchange({ kind: "vote-answer", from: 2n, to: 1n, term: 2, granted: true });
    one.raft.readIndex(1);
    one.exchange({ kind: "vote-answer", from: 3n, to: 1n, term: 9, granted: false });
    expect(one.raft.status()).toMatchObject({ role: "follower", term: 9 });
    expect(one.tick(30).length).toBeGreaterThan(0);
    expect(one.drain().reads).toEqual([]);
  });
});
