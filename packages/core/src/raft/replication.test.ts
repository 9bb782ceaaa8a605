import { describe, expect, test } from "vitest";
import { disk, Lab, log, Single } from "../../../../test/scenarios/raft-runner/lab.js";
import { bytesOf, textOf } from "../../../../test/scenarios/raft-runner/server.js";
import { founding } from "./options.js";
import { withFaults } from "../../../../test/planted/switches.js";
import type { AppendAnswer, AppendRequest, Message } from "./types.js";

const three = [1n, 2n, 3n];
const five = [1n, 2n, 3n, 4n, 5n];

function append(
  term: number,
  previousIndex: number,
  previousTerm: number,
  more: Partial<AppendRequest> = {},
): AppendRequest {
  return {
    kind: "append",
    from: 2n,
    to: 1n,
    term,
    previousIndex,
    previousTerm,
    entries: [],
    commit: 1,
    ...more,
  };
}

function answerOf(messages: readonly Message[]): AppendAnswer {
  return messages.find((message) => message.kind === "append-answer")!;
}

function appends(messages: readonly Message[], to = 2n): AppendRequest[] {
  return messages.filter((message) => message.kind === "append").filter((message) => message.to === to);
}

/** A leader of three in term 2. The second server is known to have everything. */
function leader(limits = {}): Single {
  const one = new Single(1n, founding(three), limits);
  one.tick(10);
  one.exchange({ kind: "pre-vote-answer", from: 2n, to: 1n, term: 2, granted: true });
  one.exchange({ kind: "vote-answer", from: 2n, to: 1n, term: 2, granted: true });
  accept(one, 2n, 2);
  return one;
}

const answerFrom2 = {
  kind: "append-answer",
  from: 2n,
  to: 1n,
  term: 2,
  rejected: false,
  hintIndex: 0,
  hintTerm: 0,
} as const;

function accept(one: Single, from: bigint, index: number): Message[] {
  return one.exchange({ ...answerFrom2, from, index });
}

describe("figure 2: AppendEntries", () => {
  test("1: an earlier term is refused, and the leader learns the later one", () => {
    const one = new Single(1n, disk(three, log(3)));
    expect(one.exchange(append(2, 1, 1))).toMatchObject([{ to: 2n, term: 3 }]);
    expect(one.raft.status().leader).toBe(0n);
  });

  test("2: refused if the log does not contain an entry at previousIndex whose term is previousTerm", () => {
    const one = new Single(1n, disk(three, log(2, 2)));
    expect(answerOf(one.exchange(append(4, 5, 3)))).toMatchObject({ rejected: true, index: 5 });
    expect(answerOf(one.exchange(append(4, 3, 3)))).toMatchObject({ rejected: true, index: 3 });
    expect(answerOf(one.exchange(append(4, 3, 2)))).toMatchObject({ rejected: false, index: 3 });
  });

  test("3: a conflicting entry is deleted, with all that follow it", () => {
    const one = new Lab({ 1: disk(three, log(2, 2, 2)) });
    const message = append(4, 2, 2, { entries: log(2, 4).slice(1) });
    one.server(1).receive({ message, history: undefined });
    expect(one.log(1)).toEqual(["2:2.2", "4:4.3"]);
    expect(one.server(1).disk.entries).toHaveLength(2);
  });

  test("3: entries that agree stay, and so do those after them: the message may be an old one", () => {
    const one = new Lab({ 1: disk(three, log(2, 2, 2)) });
    one.server(1).receive({ message: append(4, 1, 1, { entries: log(2) }), history: undefined });
    expect(one.log(1)).toHaveLength(3);
  });

  test("4: new entries are appended, and repeated ones are not appended again", () => {
    const one = new Lab({ 1: disk(three, []) });
    for (let count = 0; count < 2; count += 1)
      one.server(1).receive({ message: append(2, 1, 1, { entries: log(2, 2) }), history: undefined });
    expect(one.log(1)).toEqual(["2:2.2", "2:2.3"]);
  });

  test("5: the commit index is the lesser of the leader's and the last new entry", () => {
    const one = new Single(1n, disk(three, log(2, 2, 2)));
    one.exchange(append(3, 1, 1, { entries: log(2), commit: 4 }));
    expect(one.raft.status().commit).toBe(2);
  });

  test("of a message that begins before the commit index, the entries after it are accepted", () => {
    const take = () => {
      const one = new Single(1n, {
        ...disk(three, log(2, 2)),
        hardState: { term: 2, votedFor: 0n, commit: 3 },
      });
      const sent = append(2, 1, 1, { entries: log(2, 2, 2, 2), commit: 3 });
      return answerOf(one.exchange(sent)).index;
    };
    expect(take()).toBe(5);
    expect(withFaults({ lateAppendIsDropped: true }, take)).toBe(3);
  });

  test("the commit index on disk never exceeds the entries on disk, even if the write is torn", () => {
    const { raft } = new Single(1n, disk(three, []));
    raft.step(append(2, 1, 1, { entries: log(2, 2), commit: 3 }));
    expect(raft.ready()!.persist).toMatchObject({ hardState: { commit: 1 }, entries: { length: 2 } });
    expect(raft.status().commit).toBe(3);
  });

  test("an acceptance waits for the disk; the write of a replaced entry says nothing about its replacement", () => {
    const one = new Lab({ 1: disk(three, []) });
    one.server(1).slowDisk = true;
    one.server(1).receive({ message: append(2, 1, 1, { entries: log(2, 2) }), history: undefined });
    expect(one.network).toEqual([]);
    one.server(1).receive({
      message: append(3, 1, 1, { from: 3n, entries: log(3) }),
      history: undefined,
    });
    one.server(1).finishWrite();
    expect(one.status(1)).toMatchObject({ lastIndex: 2, persistedIndex: 1 });
    one.server(1).finishWrite();
    expect(one.status(1)).toMatchObject({ lastIndex: 2, persistedIndex: 2 });
  });

  test("planted: without a check of the previous entry, logs diverge", () => {
    withFaults({ previousTermUnchecked: true }, () => {
      const one = new Single(1n, disk(three, log(2, 2)));
      expect(answerOf(one.exchange(append(4, 3, 3))).rejected).toBe(false);
    });
  });

  test("planted: if conflicting entries are kept, logs diverge", () => {
    withFaults({ conflictsKept: true }, () => {
      const one = new Lab({ 1: disk(three, log(2, 2, 2)) });
      one
        .server(1)
        .receive({ message: append(4, 2, 2, { entries: log(2, 4).slice(1) }), history: undefined });
      expect(one.log(1)).toEqual(["2:2.2", "2:2.3", "2:2.4"]);
    });
  });
});

describe("5.3: log replication", () => {
  test("an entry is committed when a majority has it, and followers learn that it is", () => {
    const lab = Lab.of(5);
    lab.elect(1);
    lab.partition([1, 2], [3, 4, 5]);
    lab.propose(1, "x");
    lab.deliver();
    expect(lab.applied(1)).not.toContain("2:x");
    lab.heal();
    lab.pass(1);
    for (const id of [1, 2, 3, 4, 5]) expect(lab.applied(id)).toContain("2:x");
  });

  // Figure 7: logs that a leader of term 8 may encounter. Its own has the terms 1 1 1 4 4 5 5 6 6 6. The
  // founding snapshot has index 1 here, so each log begins at index 2.
  const figure7 = {
    a: [1, 1, 1, 4, 4, 5, 5, 6, 6],
    b: [1, 1, 1, 4],
    c: [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
    d: [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
    e: [1, 1, 1, 4, 4, 4, 4],
    f: [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
  };
  const leaders = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6];

  test.each(Object.entries(figure7))("figure 7 (%s): the follower's log becomes the leader's", (_, terms) => {
    const follower = disk(three, log(...terms), { term: 7 });
    const lab = new Lab({
      1: disk(three, log(...leaders), { term: 7 }),
      2: follower,
      3: disk(three, [], { term: 7 }),
    });
    lab.partition([1, 3], [2]);
    lab.elect(1);
    expect(lab.status(1)).toMatchObject({ role: "leader", term: 8 });
    lab.heal();
    lab.pass(2);
    expect(lab.log(2)).toEqual(lab.log(1));
    expect(lab.log(2)).toEqual([...log(...leaders).map(textOf), "8:no-op"]);
  });

  test("figure 7 (f): a whole term is skipped with one refusal", () => {
    const lab = new Lab({
      1: disk(three, log(...leaders), { term: 7 }),
      2: disk(three, log(...figure7.f), { term: 7 }),
      3: disk(three, [], { term: 7 }),
    });
    lab.partition([1, 3], [2]);
    lab.elect(1);
    lab.heal();
    lab.delivered.length = 0;
    lab.pass(2);
    const refusals = lab.delivered.filter((message) => message.kind === "append-answer" && message.rejected);
    expect(refusals.length).toBeLessThanOrEqual(2);
  });

  test("5.5: lost messages are sent again, indefinitely if necessary", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.propose(1, "x", "y");
    lab.deliver((message) => message.kind !== "append");
    expect(lab.log(2)).not.toContain("2:x");
    lab.pass(2);
    expect(lab.applied(2)).toEqual(["2:no-op", "2:x", "2:y"]);
  });
});

describe("5.4.2, figure 8: an entry of an earlier term is not committed by counting", () => {
  // (b): S1 has an entry of term 2, and S5 one of term 3.
  function figure8(): Lab {
    return new Lab(
      {
        1: disk(five, log(1, 2), { term: 3 }),
        2: disk(five, log(1), { term: 3 }),
        3: disk(five, log(1), { term: 3 }),
        4: disk(five, log(1), { term: 3 }),
        5: disk(five, log(1, 3), { term: 3, votedFor: 5n }),
      },
      { appendBytesMax: 1 },
    );
  }

  /**
   * S1 is elected in term 4, and its entry of term 2 reaches S2 and S3, but its entries of term 4 reach no
   * other server.
   */
  function untilC(lab: Lab): void {
    lab.partition([1, 2, 3, 4], [5]);
    for (const id of [2, 3, 4]) lab.tick(id, 10);
    lab.network = [];
    lab.tick(1, 10);
    const asked = new Set<bigint>();
    lab.deliver((message) => {
      if (message.kind !== "append") return message.kind !== "commit";
      // The first message is refused, as the receiver lacks the entry before.
      const isFirst = !asked.has(message.to);
      asked.add(message.to);
      return message.to !== 4n && (isFirst || message.entries[0]?.term === 2);
    });
    expect(lab.status(1)).toMatchObject({ role: "leader", term: 4 });
    expect(lab.log(3)).toEqual(["1:1.2", "2:2.3"]);
  }

  /** S1 crashes, the others elect S5 in term 5, and S5 overwrites their entries. */
  function untilD(lab: Lab): void {
    lab.server(1).crash();
    lab.heal();
    lab.elect(5);
    lab.elect(5);
    expect(lab.status(5)).toMatchObject({ role: "leader", term: 5 });
  }

  test("(c), (d): an entry on a majority is not committed, as it may still be overwritten", () => {
    const lab = figure8();
    untilC(lab);
    expect(lab.status(1).commit).toBe(1);
    untilD(lab);
    expect(lab.log(3)).toEqual(lab.log(5));
    expect(lab.applied(3)).toEqual(["1:1.2", "3:3.3", "5:no-op"]);
  });

  test("(e): followed by one of S1's own term it is committed, and S5 can no longer win", () => {
    const lab = figure8();
    lab.partition([1, 2, 3], [4, 5]);
    lab.elect(1);
    expect(lab.status(1)).toMatchObject({ role: "leader", term: 4, commit: 4 });
    lab.server(1).crash();
    lab.heal();
    for (let count = 0; count < 3; count += 1) lab.elect(5);
    expect(lab.status(5).role).not.toBe("leader");
  });

  test("planted: if it counts as committed, S1 applies it at (c), and others apply another at (d)", () => {
    withFaults({ oldTermCommittedByCounting: true }, () => {
      const lab = figure8();
      untilC(lab);
      expect(lab.applied(1)).toEqual(["1:1.2", "2:2.3"]);
      untilD(lab);
      expect(lab.applied(3)).toEqual(["1:1.2", "3:3.3", "5:no-op"]);
    });
  });
});

describe("thesis 10.2.1: writing to the leader's disk in parallel", () => {
  test("appends leave before the leader's own write, and its own entries count once on disk", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.server(1).slowDisk = true;
    lab.server(3).crash();
    lab.propose(1, "x");
    lab.deliver();
    expect(lab.log(2)).toContain("2:x");
    expect(lab.status(1).commit).toBe(2);
    lab.server(1).finishWrite();
    expect(lab.status(1).commit).toBe(3);
  });

  test("two followers are a majority without the leader's disk", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.server(1).slowDisk = true;
    lab.propose(1, "x");
    lab.deliver();
    expect(lab.status(1).commit).toBe(3);
    expect(lab.applied(1)).not.toContain("2:x");
    lab.server(1).finishWrite();
    expect(lab.applied(1)).toContain("2:x");
  });

  test("planted: if its own entries count earlier, committed entries can be lost", () => {
    withFaults({ ownEntriesCountedBeforePersist: true }, () => {
      const lab = Lab.of(3);
      lab.elect(1);
      lab.server(1).slowDisk = true;
      lab.server(3).crash();
      lab.propose(1, "x");
      lab.deliver();
      expect(lab.status(1).commit).toBe(3);
      expect(lab.server(1).disk.entries).toHaveLength(1);
    });
  });
});

describe("a commit that no entry follows is notified separately", () => {
  const notice = { kind: "commit", from: 2n, to: 1n, term: 3 } as const;

  function follower(): Single {
    const one = new Single(1n, disk(three, log(2, 2)));
    one.exchange(append(3, 3, 2));
    return one;
  }

  test("once, to followers that have acknowledged all entries, and not in an append", () => {
    const one = leader();
    one.raft.propose([bytesOf("x")]);
    one.drain();
    one.raft.step({ ...answerFrom2, index: 3 });
    const { early, notices, committed } = one.drain();
    expect(committed).toHaveLength(1);
    expect(early).toEqual([]);
    // The third server has acknowledged nothing: it will get an append.
    expect(notices).toEqual([{ ...notice, from: 1n, to: 2n, term: 2, index: 3, indexTerm: 2 }]);
    one.raft.step({ ...answerFrom2, index: 3 });
    expect(one.drain().notices).toEqual([]);
  });

  test("a follower with the entry commits it, and does not answer", () => {
    const one = follower();
    expect(one.exchange({ ...notice, index: 3, indexTerm: 2 })).toEqual([]);
    expect(one.raft.status().commit).toBe(3);
  });

  test("a follower without the entry, or with one of another term, waits for the leader's", () => {
    const one = follower();
    expect(one.exchange({ ...notice, index: 4, indexTerm: 3 })).toEqual([]);
    expect(one.exchange({ ...notice, index: 3, indexTerm: 3 })).toEqual([]);
    expect(one.raft.status().commit).toBe(1);
  });

  test("planted: if the term is ignored, a wrong entry is committed, and the leader's entry is refused", () => {
    withFaults({ committedTermUnchecked: true }, () => {
      const one = follower();
      one.exchange({ ...notice, index: 3, indexTerm: 3 });
      expect(one.raft.status().commit).toBe(3);
    });
  });

  test("the next heartbeat makes up for a lost notice", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.propose(1, "x");
    lab.deliver(({ kind }) => kind !== "commit");
    expect(lab.status(1).commit).toBe(3);
    expect(lab.status(2).commit).toBe(2);
    lab.tick(1);
    lab.deliver();
    expect(lab.status(2).commit).toBe(3);
  });
});

describe("thesis 10.2.2: pipelining, in a bounded window", () => {
  test("batches are sent without waiting for answers, up to the window", () => {
    const one = leader({ inflightMessagesMax: 3 });
    const sent: AppendRequest[] = [];
    for (let count = 0; count < 5; count += 1) {
      one.raft.propose([bytesOf(`${count}`)]);
      sent.push(...appends(one.drain().early));
    }
    expect(sent.map(({ previousIndex }) => previousIndex)).toEqual([2, 3, 4]);
    // An answer makes room, and the accumulated entries leave in one message.
    expect(appends(accept(one, 2n, 3)).map(({ entries }) => entries.length)).toEqual([2]);
  });

  test("the window is also bounded in bytes", () => {
    const one = leader({ inflightBytesMax: 250, appendBytesMax: 150 });
    one.raft.propose(Array.from({ length: 5 }, () => new Uint8Array(100)));
    expect(appends(one.drain().early)).toHaveLength(2);
  });

  test("many proposals before one ready() are one message to each follower", () => {
    const one = leader();
    for (let count = 0; count < 100; count += 1) one.raft.propose([bytesOf("x")]);
    expect(appends(one.drain().early).map(({ entries }) => entries.length)).toEqual([100]);
  });

  test("a batch ends at appendBytesMax; a larger entry is sent alone", () => {
    const one = leader({ appendBytesMax: 200 });
    one.raft.propose([bytesOf("a"), bytesOf("b"), new Uint8Array(1_000), bytesOf("c")]);
    const lengths = appends(one.drain().early).map(({ entries }) => entries.length);
    expect(lengths).toEqual([2, 1, 1]);
  });

  test("an unreachable follower gets one message at a time, from the last entry known to be there", () => {
    const one = leader();
    one.raft.propose([bytesOf("a")]);
    one.drain();
    one.raft.reportUnreachable(2n);
    const [probe] = appends(one.drain().early);
    expect(probe).toMatchObject({ previousIndex: 2 });
    one.raft.propose([bytesOf("b")]);
    expect(appends(one.drain().early)).toEqual([]);
    expect(one.raft.status().followers[0]).toMatchObject({ state: "probe", matchIndex: 2 });
  });

  test("a late refusal of an entry accepted meanwhile changes nothing", () => {
    const one = leader();
    const late = { rejected: true, index: 1, hintIndex: 0, hintTerm: 0 };
    one.exchange({ kind: "append-answer", from: 2n, to: 1n, term: 2, ...late });
    expect(one.raft.status().followers[0]).toMatchObject({ state: "replicate", matchIndex: 2 });
  });

  test("the loss of a whole window is detected at the next answer to a heartbeat", () => {
    const one = leader({ inflightMessagesMax: 2 });
    for (let count = 0; count < 5; count += 1) {
      one.raft.propose([bytesOf(`${count}`)]);
      one.drain();
    }
    const answer = { kind: "heartbeat-answer", from: 2n, to: 1n, term: 2, round: 0, holdMs: 0 } as const;
    const [question] = appends(one.exchange(answer));
    expect(question).toMatchObject({ previousIndex: 4, entries: [] });
    const refusal = { rejected: true, index: 4, hintIndex: 2, hintTerm: 2 };
    const [again] = appends(one.exchange({ kind: "append-answer", from: 2n, to: 1n, term: 2, ...refusal }));
    expect(again).toMatchObject({ previousIndex: 2 });
    expect(again!.entries).toHaveLength(5);
  });

  test("uncommitted data is bounded: more is refused until some is committed", () => {
    const one = leader({ uncommittedBytesMax: 1_000 });
    expect(one.raft.propose([new Uint8Array(900)])).toEqual({ accepted: true, index: 3, term: 2 });
    expect(one.raft.propose([new Uint8Array(900)])).toEqual({ accepted: false, reason: "overloaded" });
    one.drain();
    accept(one, 2n, 3);
    expect(one.raft.propose([new Uint8Array(900)]).accepted).toBe(true);
  });

  test("committed entries are handed out in bounded portions", () => {
    const one = leader({ committedEntriesMax: 3 });
    one.raft.propose(Array.from({ length: 8 }, () => bytesOf("x")));
    one.drain();
    one.raft.step({
      kind: "append-answer",
      from: 2n,
      to: 1n,
      term: 2,
      rejected: false,
      index: 10,
      hintIndex: 0,
      hintTerm: 0,
    });
    const portions: number[] = [];
    for (let ready = one.raft.ready(); ready !== undefined; ready = one.raft.ready())
      portions.push(ready.committed.length);
    expect(portions.filter((count) => count > 0)).toEqual([3, 3, 2]);
  });
});
