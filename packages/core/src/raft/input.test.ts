import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { disk, log, Single } from "../../../../test/scenarios/raft-runner/lab.js";
import { LeaseholdError, majorityOf } from "leasehold/common";
import { founding } from "./options.js";
import { reachedByMajority } from "./quorum.js";
import { Raft } from "./raft.js";
import type { AppendRequest, Message } from "./types.js";

const three = [1n, 2n, 3n];
const random = { next: () => 0 };
const append: AppendRequest = {
  kind: "append",
  from: 2n,
  to: 1n,
  term: 3,
  previousIndex: 3,
  previousTerm: 2,
  entries: [],
  commit: 1,
};

function codeOf(action: () => void): string {
  try {
    action();
    return "fine";
  } catch (error) {
    return error instanceof LeaseholdError ? error.code : String(error);
  }
}

function follower(commit = 1): Single {
  const one = new Single(1n, disk(three, log(2, 2), { commit }));
  one.drain();
  return one;
}

describe("bad messages", () => {
  const [third, fourth] = log(2, 3, 3).slice(1);
  test.each<[string, Message]>([
    ["meant for another", { ...append, to: 9n }],
    ["from itself", { ...append, from: 1n }],
    ["from nobody", { ...append, from: 0n }],
    ["a gap in the entries", { ...append, entries: [{ ...fourth!, index: 5 }] }],
    ["entries that do not follow what goes before", { ...append, entries: [third!] }],
    ["a term that decreases", { ...append, entries: [{ ...fourth!, term: 1 }] }],
    ["a term later than the leader's", { ...append, entries: [{ ...fourth!, term: 4 }] }],
    ["a negative index", { ...append, previousIndex: -1 }],
    ["a fraction", { ...append, commit: 1.5 }],
    ["a term that is no number", { ...append, term: Number.NaN }],
    [
      "a candidate of the future's log",
      { kind: "vote", from: 2n, to: 1n, term: 4, lastIndex: 9, lastTerm: 4, transfer: 0 },
    ],
    [
      "a snapshot without voters",
      {
        kind: "snapshot",
        from: 2n,
        to: 1n,
        term: 4,
        meta: { index: 9, term: 4, membership: { voters: [], learners: [] } },
      },
    ],
  ])("%s: dropped and counted", (_, message) => {
    const one = follower();
    const before = one.raft.status();
    expect(one.exchange(message)).toEqual([]);
    expect(one.raft.status()).toEqual({ ...before, droppedMessages: 1 });
  });

  test("an acceptance of entries that the leader never had is dropped; so is one from a stranger", () => {
    const one = new Single(1n, founding(three));
    one.tick(10);
    one.exchange({ kind: "pre-vote-answer", from: 2n, to: 1n, term: 2, granted: true });
    one.exchange({ kind: "vote-answer", from: 2n, to: 1n, term: 2, granted: true });
    const answer = {
      kind: "append-answer",
      to: 1n,
      term: 2,
      rejected: false,
      hintIndex: 0,
      hintTerm: 0,
    } as const;
    one.exchange({ ...answer, from: 2n, index: 99 });
    one.exchange({ ...answer, from: 9n, index: 2 });
    expect(one.raft.status()).toMatchObject({ commit: 1, droppedMessages: 2 });
  });

  test("random messages are dropped, obeyed or reported as corruption, and committed entries stay", () => {
    const count = fc.oneof(fc.nat(6), fc.constantFrom(-1, 0.5, Number.NaN, 2 ** 60));
    const id = fc.bigInt(0n, 4n);
    const entry = fc.record({
      kind: fc.constant("normal" as const),
      index: count,
      term: count,
      data: fc.uint8Array({ maxLength: 2 }),
    });
    const message = fc.record({
      kind: fc.constantFrom(
        "pre-vote",
        "vote",
        "pre-vote-answer",
        "vote-answer",
        "append",
        "append-answer",
        "heartbeat",
        "heartbeat-answer",
        "snapshot-answer",
        "timeout-now",
      ),
      from: id,
      to: fc.constant(1n),
      term: count,
      lastIndex: count,
      lastTerm: count,
      granted: fc.boolean(),
      transfer: fc.nat(2),
      transfersOver: fc.nat(2),
      holdMs: fc.constantFrom(0, 0.5, 500, -1, Infinity, NaN),
      previousIndex: count,
      previousTerm: count,
      entries: fc.array(entry, { maxLength: 3 }),
      commit: count,
      rejected: fc.boolean(),
      index: count,
      hintIndex: count,
      hintTerm: count,
      round: count,
    });
    fc.assert(
      fc.property(fc.array(message, { maxLength: 20 }), (messages) => {
        const one = follower(2);
        expect(
          codeOf(() => {
            for (const each of messages) {
              one.exchange(each as Message);
              one.tick(3);
            }
          }),
        ).toMatch(/^(?:LOG_CORRUPT|fine)$/);
        const { commit, lastIndex, persistedIndex, applied } = one.raft.status();
        expect(commit).toBeGreaterThanOrEqual(2);
        expect(lastIndex).toBeGreaterThanOrEqual(commit);
        expect(persistedIndex).toBeLessThanOrEqual(lastIndex);
        expect(applied).toBeLessThanOrEqual(commit);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("proofs that a disk has lost something", () => {
  const heartbeat = {
    kind: "heartbeat",
    from: 2n,
    to: 1n,
    term: 3,
    commit: 9,
    round: 0,
    transfersOver: 0,
  } as const;
  test.each<[string, Message]>([
    ["a heartbeat commits what this server had acknowledged, and no longer has", heartbeat],
    ["a leader has another entry where one is committed", { ...append, previousIndex: 3, previousTerm: 3 }],
    [
      "a leader sends another entry where one is committed",
      { ...append, previousIndex: 1, previousTerm: 1, entries: log(3) },
    ],
  ])("%s", (_, message) => {
    const one = follower(3);
    expect(() => one.exchange(message)).toThrow(expect.objectContaining({ code: "LOG_CORRUPT" }));
  });

  /**
   * A server that followed a leader of term 3 and has seen term 4 begin: it knows everything it did in that
   * term.
   */
  function inLaterTerm(): Single {
    const one = follower();
    one.exchange(append);
    one.exchange({ ...append, from: 3n, term: 4 });
    return one;
  }
  const later = { ...heartbeat, from: 3n, term: 4 };

  test("a heartbeat with a commit index never acknowledged is refused in a term that the server has seen begin", () => {
    const one = inLaterTerm();
    for (const commit of [1_000_000, 9, 4]) {
      one.raft.step({ ...later, commit });
      const { objections, messages } = one.drain();
      expect(objections).toEqual([
        `3 commits entries up to ${commit}, and this server has acknowledged 3 in term 4`,
      ]);
      expect(messages).toEqual([]);
    }
    expect(one.raft.status().commit).toBe(1);
    expect(one.exchange({ ...later, commit: 3 })).toHaveLength(1);
    expect(one.raft.status().commit).toBe(3);
  });

  test("acknowledgements count from the term's beginning: of appends, late ones too, and of snapshots", () => {
    const one = inLaterTerm();
    const entries = [{ kind: "normal", index: 4, term: 4, data: new Uint8Array(0) }] as const;
    one.exchange({ ...append, from: 3n, term: 4, entries });
    one.exchange({ ...later, commit: 4 });
    const membership = { voters: three, learners: [] };
    one.raft.step({ kind: "snapshot", from: 3n, to: 1n, term: 4, meta: { index: 9, term: 4, membership } });
    one.drain();
    one.raft.step({ ...later, commit: 9 });
    expect(one.drain().objections).toEqual([]);
    one.raft.step({ ...later, commit: 10 });
    expect(one.drain().objections).toHaveLength(1);
    one.exchange({ ...append, from: 2n, term: 5, previousIndex: 9, previousTerm: 4, commit: 9 });
    one.raft.step({ ...later, from: 2n, term: 5, commit: 10 });
    expect(one.drain().objections).toHaveLength(1);
  });

  test("in a term that the server has seen begin, a second leader is refused and the first one is followed", () => {
    const one = inLaterTerm();
    for (const message of [append, heartbeat]) {
      one.raft.step({ ...message, from: 2n, term: 4 });
      expect(one.drain().objections).toEqual(["3 and 2 both lead in term 4"]);
    }
    expect(one.raft.status().leader).toBe(3n);
  });

  test("a server that started in the middle of a term may have lost what it had acknowledged in that term", () => {
    const one = follower();
    one.exchange({ ...append, term: 4 });
    expect(() => one.exchange({ ...heartbeat, term: 4 })).toThrow(/was it lost/);
  });

  test("a second leader of one term is reported as corruption", () => {
    const one = follower();
    one.exchange(append);
    expect(() => one.exchange({ ...append, from: 3n })).toThrow(/both lead in term 3/);
  });
});

describe("recovery", () => {
  const recover = (recovered: ReturnType<typeof disk>) => () => new Raft({ id: 1n, recovered, random });
  const corrupt = expect.objectContaining({ code: "LOG_CORRUPT" });

  test("a log that contradicts itself is refused", () => {
    const entries = log(2, 2, 3);
    expect(recover(disk(three, [entries[0]!, entries[2]!]))).toThrow(corrupt);
    expect(recover(disk(three, log(2, 3, 2), { term: 3 }))).toThrow(corrupt);
    expect(recover(disk(three, entries, { term: 2 }))).toThrow(corrupt);
    expect(recover(disk(three, entries, { commit: 5 }))).toThrow(corrupt);
  });

  test("entries covered by the snapshot may be present; committed entries are handed out again", () => {
    const snapshot = { index: 3, term: 2, membership: { voters: three, learners: [] } };
    const one = new Single(1n, { ...disk(three, log(2, 2, 3, 3), { commit: 4 }), snapshot });
    expect(one.drain().committed.map(({ index }) => index)).toEqual([4]);
    expect(one.raft.status()).toMatchObject({ lastIndex: 5, commit: 4, applied: 4, snapshotIndex: 3 });
  });

  test("settings that make no sense are refused", () => {
    const recovered = founding(three);
    const invalid = expect.objectContaining({ code: "INVALID_CONFIG" });
    expect(() => new Raft({ id: 0n, recovered, random })).toThrow(invalid);
    expect(() => new Raft({ id: 1n, recovered, random, electionTicks: 1 })).toThrow(invalid);
    expect(() => new Raft({ id: 1n, recovered, random, heartbeatTicks: 0 })).toThrow(invalid);
    expect(() => new Raft({ id: 1n, recovered, random, limits: { pendingReadsMax: 0.5 } })).toThrow(invalid);
  });
});

describe("quorums", () => {
  test("`reachedByMajority` is the greatest value that a majority has reached", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { minLength: 1, maxLength: 9 }), (values) => {
        const reached = reachedByMajority([...values]);
        const count = (least: number) => values.filter((value) => value >= least).length;
        expect(count(reached)).toBeGreaterThanOrEqual(majorityOf(values.length));
        expect(count(reached + 1)).toBeLessThan(majorityOf(values.length));
      }),
    );
    expect(reachedByMajority([])).toBe(0);
  });
});
