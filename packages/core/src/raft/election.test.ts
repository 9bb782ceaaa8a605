import { describe, expect, test } from "vitest";
import { disk, Lab, log, Single } from "../../../../test/scenarios/raft-runner/lab.js";
import { founding } from "./options.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { Raft } from "./raft.js";
import type { Message, VoteRequest } from "./types.js";

const three = [1n, 2n, 3n];
const five = [1n, 2n, 3n, 4n, 5n];

function vote(from: bigint, term: number, lastIndex: number, lastTerm: number): VoteRequest {
  return { kind: "vote", from, to: 1n, term, lastIndex, lastTerm, transfer: 0 };
}

function granted(messages: readonly Message[]): boolean | undefined {
  const answer = messages.find(({ kind }) => kind === "vote-answer" || kind === "pre-vote-answer");
  return answer !== undefined && "granted" in answer ? answer.granted : undefined;
}

describe("figure 2: rules for servers", () => {
  test("RequestVote 1: reply false if term < currentTerm, and return currentTerm", () => {
    const one = new Single(1n, disk(three, log(2, 3)));
    expect(one.exchange(vote(2n, 2, 9, 1))).toMatchObject([{ kind: "vote-answer", granted: false, term: 3 }]);
  });

  test("RequestVote 2: one vote per term, first come, first served; the same candidate may ask again", () => {
    const one = new Single(1n, founding(three));
    expect(granted(one.exchange(vote(2n, 5, 1, 1)))).toBe(true);
    expect(granted(one.exchange(vote(3n, 5, 1, 1)))).toBe(false);
    expect(granted(one.exchange(vote(2n, 5, 1, 1)))).toBe(true);
  });

  test("persistent state: a vote is written before it is sent, and a restarted server remembers it", () => {
    const raft = new Raft({ id: 1n, recovered: founding(three), random: { next: () => 0 } });
    raft.step(vote(2n, 5, 1, 1));
    const ready = raft.ready()!;
    expect(ready.early).toEqual([]);
    expect(granted(ready.messages)).toBe(true);
    const { hardState } = ready.persist!;
    expect(hardState).toEqual({ term: 5, votedFor: 2n, commit: 1, promisedMs: 0 });
    const again = new Single(1n, { ...founding(three), hardState });
    expect(granted(again.exchange(vote(3n, 5, 1, 1)))).toBe(false);
  });

  test("planted: without persisted votes a server votes twice, and one term has two leaders", () => {
    withFaults({ voteNotPersisted: true }, () => {
      const raft = new Raft({ id: 1n, recovered: founding(three), random: { next: () => 0 } });
      raft.step(vote(2n, 5, 1, 1));
      const { hardState } = raft.ready()!.persist!;
      const again = new Single(1n, { ...founding(three), hardState });
      expect(granted(again.exchange(vote(3n, 5, 1, 1)))).toBe(true);
    });
  });

  test("a server that is receiving a long message from its leader does not stand", () => {
    const role = () => {
      const one = new Single(1n, founding(three));
      one.exchange({ kind: "heartbeat", from: 2n, to: 1n, term: 2, commit: 1, round: 0, transfersOver: 0 });
      one.tick(9);
      one.raft.reportArriving(3n);
      one.raft.reportArriving(2n);
      one.tick(9);
      return one.raft.status().role;
    };
    expect(role()).toBe("follower");
    expect(withFaults({ arrivingUnheard: true }, role)).not.toBe("follower");
  });

  test("all servers: a later term makes any server a follower", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.server(1).receive({
      message: {
        kind: "append-answer",
        from: 2n,
        to: 1n,
        term: 9,
        rejected: true,
        index: 0,
        hintIndex: 0,
        hintTerm: 0,
      },
      history: undefined,
    });
    expect(lab.status(1)).toMatchObject({ role: "follower", term: 9 });
  });
});

describe("5.2: leader election", () => {
  test("a follower that hears nothing for an election timeout stands, and wins with a majority", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    expect(lab.status(1)).toMatchObject({ role: "leader", term: 2, leader: 1n });
    expect(lab.status(2)).toMatchObject({ role: "follower", term: 2, leader: 1n });
    expect(lab.log(1)).toEqual(["2:no-op"]);
  });

  test("heartbeats keep followers from standing", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.pass(50);
    expect([1, 2, 3].map((id) => lab.status(id).term)).toEqual([2, 2, 2]);
  });

  test("a candidate that hears of another leader of its term follows", () => {
    const lab = Lab.of(3);
    lab.partition([1, 2], [3]);
    lab.elect(1);
    lab.tick(3, 10);
    expect(lab.status(3).role).toBe("pre-candidate");
    lab.network = [];
    lab.heal();
    lab.pass(1);
    expect(lab.status(3)).toMatchObject({ role: "follower", leader: 1n });
  });

  test("after split votes nobody wins until a later timeout", () => {
    const one = new Single(1n, founding(five));
    one.tick(10);
    for (const from of [2n, 3n])
      one.exchange({ kind: "pre-vote-answer", from, to: 1n, term: 2, granted: true });
    expect(one.raft.status()).toMatchObject({ role: "candidate", term: 2 });
    one.exchange({ kind: "vote-answer", from: 2n, to: 1n, term: 2, granted: true });
    for (const from of [3n, 4n]) one.exchange({ kind: "vote-answer", from, to: 1n, term: 2, granted: false });
    expect(one.raft.status().role).toBe("candidate");
    one.exchange({ kind: "vote-answer", from: 5n, to: 1n, term: 2, granted: false });
    expect(one.raft.status()).toMatchObject({ role: "follower", term: 2 });
    const asked = one.tick(10).map(({ kind, term }) => `${kind} ${term}`);
    expect(asked).toEqual(five.slice(1).map(() => "pre-vote 3"));
  });

  test("a repeated answer from a voter is not a second vote", () => {
    const one = new Single(1n, founding(five));
    one.tick(10);
    for (let count = 0; count < 3; count += 1)
      one.exchange({ kind: "pre-vote-answer", from: 2n, to: 1n, term: 2, granted: true });
    expect(one.raft.status().role).toBe("pre-candidate");
  });

  test("election timeouts are drawn anew from [T, 1.5T)", () => {
    const draws = [0, 0.5, 0.999];
    const waits = draws.map((draw) => {
      const raft = new Raft({ id: 1n, recovered: founding(three), random: { next: () => draw } });
      let ticks = 0;
      for (; raft.status().role === "follower"; ticks += 1) raft.tick();
      return ticks;
    });
    expect(waits).toEqual([10, 12, 14]);
  });

  test("a single server elects itself once its vote is on disk, and commits once its entries are", () => {
    const raft = new Raft({ id: 1n, recovered: founding([1n]), random: { next: () => 0 } });
    for (let tick = 0; tick < 10; tick += 1) raft.tick();
    expect(raft.status().role).toBe("candidate");
    raft.persisted(raft.ready()!.persist!.sequence);
    expect(raft.status().role).toBe("leader");
    raft.propose([new Uint8Array([7])]);
    const { persist, committed } = raft.ready()!;
    expect(persist!.entries).toHaveLength(2);
    expect(committed).toEqual([]);
    raft.persisted(persist!.sequence);
    expect(raft.ready()!.committed).toEqual(persist!.entries);
  });
});

test("a write begun before a candidate voted for itself does not make that vote durable", () => {
  const raft = new Raft({ id: 1n, recovered: founding([1n]), random: { next: () => 0 } });
  raft.step({
    kind: "append-answer",
    from: 2n,
    to: 1n,
    term: 5,
    rejected: true,
    index: 0,
    hintIndex: 0,
    hintTerm: 0,
  });
  const { persist: before } = raft.ready()!;
  for (let tick = 0; tick < 10; tick += 1) raft.tick();
  const { persist: vote } = raft.ready()!;
  expect(vote!.hardState).toEqual({ term: 6, votedFor: 1n, commit: 1, promisedMs: 0 });
  raft.persisted(before!.sequence);
  expect(raft.status().role).toBe("candidate");
  raft.persisted(vote!.sequence);
  expect(raft.status().role).toBe("leader");
});

describe("5.4.1: election restriction", () => {
  // The voter's log ends at index 3 with term 3.
  test.each([
    ["the last entry has a later term, though the log is shorter", 2, 4, true],
    ["the same last entry", 3, 3, true],
    ["the same last term, and longer", 4, 3, true],
    ["the same last term, and shorter", 2, 3, false],
    ["an earlier last term, though the log is longer", 9, 2, false],
  ])("%s", (_, lastIndex, lastTerm, expected) => {
    const one = new Single(1n, disk(three, log(2, 3)));
    expect(granted(one.exchange(vote(2n, 5, lastIndex, lastTerm)))).toBe(expected);
    const asked = new Single(1n, disk(three, log(2, 3)));
    expect(granted(asked.exchange({ ...vote(2n, 5, lastIndex, lastTerm), kind: "pre-vote" }))).toBe(expected);
  });

  test("planted: without the restriction, a server that lacks a committed entry is elected", () => {
    withFaults({ votesForOldLogs: true }, () => {
      const one = new Single(1n, disk(three, log(2, 3)));
      expect(granted(one.exchange(vote(2n, 5, 1, 1)))).toBe(true);
    });
  });
});

describe("thesis 9.6: pre-vote", () => {
  test("a follower that is cut off asks forever, and its term does not grow", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.partition([1, 2], [3]);
    lab.pass(100);
    expect(lab.status(3)).toMatchObject({ term: 2 });
    lab.heal();
    lab.pass(20);
    expect(lab.status(1)).toMatchObject({ role: "leader", term: 2 });
    expect(lab.status(3)).toMatchObject({ role: "follower", leader: 1n });
  });

  test("a pre-vote changes neither the term nor the vote of the server that grants it, and is not written", () => {
    const one = new Single(1n, founding(three));
    const answers = one.exchange({ ...vote(2n, 7, 1, 1), kind: "pre-vote" });
    expect(answers).toMatchObject([{ kind: "pre-vote-answer", term: 7, granted: true }]);
    expect(one.raft.status().term).toBe(1);
    expect(granted(one.exchange(vote(3n, 7, 1, 1)))).toBe(true);
  });

  test("a candidate that is behind learns the term from the refusal", () => {
    const one = new Single(1n, founding(three));
    one.tick(10);
    one.exchange({ kind: "pre-vote-answer", from: 2n, to: 1n, term: 8, granted: false });
    expect(one.raft.status()).toMatchObject({ role: "follower", term: 8 });
  });
});

describe("thesis 4.2.3 and 6.2: check-quorum", () => {
  test("a voter that hears a leader answers no request for a vote, and stays in its term", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    for (const id of [1, 2]) {
      const request = { ...vote(3n, 9, 9, 9), to: BigInt(id) };
      lab.server(id).receive({ message: request, history: undefined });
      lab.server(id).receive({ message: { ...request, kind: "pre-vote" }, history: undefined });
      expect(lab.network).toEqual([]);
      expect(lab.status(id).term).toBe(2);
    }
  });

  test("a leader without a majority steps down within two election timeouts", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.partition([1], [2, 3]);
    lab.pass(9);
    expect(lab.status(1).role).toBe("leader");
    lab.pass(11);
    expect(lab.status(1).role).not.toBe("leader");
    expect(lab.propose(1, "lost")).toBe(false);
  });

  test("a leader that a majority answers stays, even if one server is down", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.server(3).crash();
    lab.pass(50);
    expect(lab.status(1)).toMatchObject({ role: "leader", term: 2 });
  });

  test("a leader of an earlier term is informed, even by a server that cannot be elected: no server is stuck", () => {
    const lab = new Lab({
      1: founding(three),
      2: founding(three),
      3: { ...founding(three), hardState: { term: 6, votedFor: 3n, commit: 1 } },
    });
    lab.partition([1, 2], [3]);
    lab.elect(1);
    lab.propose(1, "a");
    lab.deliver();
    lab.heal();
    lab.pass(60);
    const leaders = [1, 2, 3].filter((id) => lab.status(id).role === "leader");
    expect(leaders).toHaveLength(1);
    expect(lab.status(leaders[0]!).term).toBeGreaterThan(6);
    expect(lab.applied(3)).toContain("2:a");
  });
});
