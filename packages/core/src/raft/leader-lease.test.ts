import { describe, expect, test } from "vitest";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";
import { disk, log, Single } from "../../../../test/scenarios/raft-runner/lab.js";
import { founding } from "./options.js";
import type { HardState, Heartbeat, MemberId, VoteRequest } from "./types.js";

const three = [1n, 2n, 3n];
const five = [1n, 2n, 3n, 4n, 5n];
const holdMs = 500;
const clocks = { holdMs, clockRateError: 0.1 };
/** 500 · 0.9 / 1.1 */
const leaseMs = 409;

function bothWays<T>(mistake: keyof Faults, body: () => T): { right: T; wrong: T } {
  return { right: body(), wrong: withFaults({ [mistake]: true }, body) };
}

/** Server 1 as leader of these voters in term 2. All of them have acknowledged its no-op, at index 2. */
function leaderOf(voters: readonly MemberId[], learners: readonly MemberId[] = []): Single {
  const recovered = founding(voters);
  const snapshot = { ...recovered.snapshot, membership: { voters, learners } };
  const one = new Single(1n, { ...recovered, snapshot }, {}, clocks);
  one.at(0);
  one.tick(10);
  for (const kind of ["pre-vote-answer", "vote-answer"] as const)
    for (const from of voters.slice(1)) one.exchange({ kind, from, to: 1n, term: 2, granted: true });
  const answer = {
    kind: "append-answer",
    to: 1n,
    term: 2,
    rejected: false,
    hintIndex: 0,
    hintTerm: 0,
  } as const;
  for (const from of voters.slice(1)) one.exchange({ ...answer, from, index: 2 });
  expect(one.raft.status()).toMatchObject({ role: "leader", term: 2, commit: 2 });
  return one;
}

const answer = { kind: "heartbeat-answer", to: 1n, term: 2, holdMs } as const;

/** At 1,000 ms the leader sends a round of heartbeats, which these voters answer at 1,300 ms. */
function heard(one: Single, ...by: readonly MemberId[]): Single {
  return heardWith(one, ...by.map((from) => [from, holdMs] as const));
}

/** The same, with the promise in each voter's answer, ms. */
function heardWith(one: Single, ...by: readonly (readonly [MemberId, number])[]): Single {
  one.at(1_000);
  const { round } = one.tick().find(({ kind }) => kind === "heartbeat") as Heartbeat;
  one.at(1_300);
  for (const [from, held] of by) one.exchange({ ...answer, from, round, holdMs: held });
  return one;
}

function certainAt(one: Single, ms: number, wallMs = ms): boolean {
  one.at(ms, wallMs);
  return one.raft.readIndexByClock() !== undefined;
}

describe("thesis 6.4.1: a leader knows by its clock how long nobody else can lead", () => {
  test("the time counts from the sending of the answered round, less the maximum difference of clocks", () => {
    const one = heard(leaderOf(three), 2n);
    expect(one.raft.readIndexByClock()).toBe(2);
    expect([leaseMs, leaseMs + 1].map((ms) => certainAt(one, 1_000 + ms))).toEqual([true, false]);
    const late = () => certainAt(heard(leaderOf(three), 2n), 1_001 + leaseMs);
    expect(bothWays("timeFromTheAnswer", late)).toEqual({ right: false, wrong: true });
    expect(bothWays("timeIgnoresRates", late)).toEqual({ right: false, wrong: true });
  });

  test("each answered round extends the time; an answer to an older round does not", () => {
    const one = heard(leaderOf(three), 2n);
    one.at(1_350);
    one.tick();
    one.exchange({ ...answer, from: 3n, round: 1 });
    expect(certainAt(one, 1_420)).toBe(false);
    one.exchange({ ...answer, from: 3n, round: 2 });
    expect([1_420, 1_350 + leaseMs, 1_351 + leaseMs].map((ms) => certainAt(one, ms))).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("a majority of the voters must have answered", () => {
    const ofFive = bothWays("timeByTheFirst", () => certainAt(heard(leaderOf(five), 2n), 1_300));
    expect(ofFive).toEqual({ right: false, wrong: true });
    expect(certainAt(heard(leaderOf(five), 2n, 5n), 1_300)).toBe(true);
    const byLearner = bothWays("timeByLearners", () => certainAt(heard(leaderOf(three, [4n]), 4n), 1_300));
    expect(byLearner).toEqual({ right: false, wrong: true });
  });

  test("each voter's own promise counts, whatever the leader's timeout is", () => {
    const later = (...by: readonly (readonly [MemberId, number])[]) =>
      bothWays("timeByItsOwnTimeout", () => certainAt(heardWith(leaderOf(three), ...by), 1_000 + leaseMs));
    expect(later([2n, 300])).toEqual({ right: false, wrong: true });
    // One other voter is enough, so the longer of their promises counts.
    expect(later([2n, 300], [3n, 500])).toEqual({ right: true, wrong: true });
    expect(certainAt(heardWith(leaderOf(three), [2n, 1_000]), 1_000 + 2 * leaseMs)).toBe(true);
    // Of four other voters, the second longest promise decides.
    const ofFive = (ms: number) =>
      certainAt(heardWith(leaderOf(five), [2n, 250], [3n, 1_000], [4n, 500], [5n, 0]), 1_000 + ms);
    expect([leaseMs, leaseMs + 1].map(ofFive)).toEqual([true, false]);
  });

  test("the steady clock of a suspended machine stops, so the clock that advanced further counts", () => {
    const suspended = () => certainAt(heard(leaderOf(three), 2n), 1_301, 61_301);
    expect(bothWays("timeIgnoresSuspension", suspended)).toEqual({ right: false, wrong: true });
    expect(certainAt(heard(leaderOf(three), 2n), 1_301, 0)).toBe(true);
    expect(certainAt(heard(leaderOf(three), 2n), 1_410, 0)).toBe(false);
  });

  test("while a server that the leader asked to stand may be elected, the leader does not rely on promises", () => {
    const told = () => {
      const one = heard(leaderOf(three), 2n);
      one.raft.transferLeader(2n);
      expect(one.drain().early).toMatchObject([{ kind: "timeout-now", to: 2n, transfer: 1 }]);
      const answered = () => {
        const beats = one.tick().filter(({ kind }) => kind === "heartbeat") as Heartbeat[];
        for (const { to: from, round } of beats) one.exchange({ ...answer, from, round });
        return { over: beats[0]!.transfersOver, isSure: certainAt(one, 1_300) };
      };
      const [first] = Array.from({ length: 8 }, answered);
      const { round } = one.tick().find(({ kind }) => kind === "heartbeat") as Heartbeat;
      expect(one.raft.status().transferTo).toBe(2n);
      // The server has not stood, so the transfer is over, and later promises count.
      const sent = one.tick().find(({ kind }) => kind === "heartbeat") as Heartbeat;
      expect(one.raft.status()).toMatchObject({ role: "leader", transferTo: 0n });
      one.exchange({ ...answer, from: 2n, round });
      const late = certainAt(one, 1_300);
      one.exchange({ ...answer, from: 2n, round: sent.round });
      return [first, late, sent.transfersOver, certainAt(one, 1_300)];
    };
    expect(bothWays("timeAfterTheWord", told)).toEqual({
      right: [{ over: 0, isSure: false }, false, 1, true],
      wrong: [{ over: 0, isSure: true }, true, 1, true],
    });
  });

  test("no reads by clock before the first commit, on a follower, or with `holdMs` 0", () => {
    const one = new Single(1n, founding([1n]), {}, clocks);
    one.at(0);
    expect(certainAt(one, 0)).toBe(false);
    one.tick(11);
    expect(certainAt(one, 0)).toBe(true);
    const careless = new Single(1n, founding([1n]));
    careless.at(0);
    careless.tick(11);
    expect(careless.raft.status().role).toBe("leader");
    expect(certainAt(careless, 0)).toBe(false);
  });
});

describe("a server is loyal to the leader it hears, by its own clock", () => {
  const request = (term: number, transfer = 0): VoteRequest => ({
    kind: "vote",
    from: 3n,
    to: 1n,
    term,
    lastIndex: 9,
    lastTerm: term - 1,
    transfer,
  });

  function votes(one: Single, ms: number, term: number, transfer = 0): boolean {
    one.at(ms);
    return one.exchange(request(term, transfer)).some((each) => each.kind === "vote-answer" && each.granted);
  }

  const heartbeat: Heartbeat = {
    kind: "heartbeat",
    from: 2n,
    to: 1n,
    term: 2,
    commit: 1,
    round: 1,
    transfersOver: 0,
  };

  /** A server that hears server 2 lead in term 2, at 100 ms. */
  function follower(): Single {
    const one = new Single(1n, founding(three), {}, clocks);
    one.at(100);
    one.exchange(heartbeat);
    expect(one.raft.status()).toMatchObject({ leader: 2n, term: 2 });
    return one;
  }

  test("after a burst of ticks it neither stands nor votes", () => {
    const standsEarly = bothWays("standsByTicksAlone", () => {
      const one = follower();
      one.at(200);
      return one.tick(10).some(({ kind }) => kind === "pre-vote");
    });
    expect(standsEarly).toEqual({ right: false, wrong: true });
    const one = follower();
    one.at(200);
    one.tick(10);
    expect(votes(one, 599, 3)).toBe(false);
    expect(one.raft.status().term).toBe(2);
    expect(votes(one, 600, 3)).toBe(true);
    const another = follower();
    another.at(600);
    expect(another.tick(10).some(({ kind }) => kind === "pre-vote")).toBe(true);
  });

  test("a later term in another message does not release it", () => {
    const votesAt = (ms: number, transfer = 0) => {
      const one = follower();
      one.exchange({ kind: "vote-answer", from: 3n, to: 1n, term: 3, granted: false });
      expect(one.raft.status()).toMatchObject({ leader: 0n, term: 3 });
      return votes(one, ms, 3, transfer);
    };
    expect(bothWays("votesWhileHeld", () => votesAt(599))).toEqual({ right: false, wrong: true });
    expect(votesAt(600)).toBe(true);
    expect(bothWays("votesWhileHeld", () => votes(follower(), 300, 3))).toEqual({
      right: false,
      wrong: true,
    });
  });

  test("the leader itself may ask for another leader", () => {
    expect(votes(follower(), 300, 3, 1)).toBe(true);
  });

  test("a cancelled transfer wins no votes for its candidate, and the next transfer does", () => {
    const told = (ms: number, transfer: number) => {
      const one = follower();
      one.exchange({ ...heartbeat, round: 2, transfersOver: 1 });
      // A late heartbeat, from before the cancellation.
      one.exchange(heartbeat);
      return votes(one, ms, 3, transfer);
    };
    expect(bothWays("lateWordObeyed", () => told(599, 1))).toEqual({ right: false, wrong: true });
    expect([told(599, 2), told(600, 1)]).toEqual([true, true]);
    // The target of the cancelled transfer does not stand, either.
    const obeys = () => {
      const one = follower();
      one.exchange({ ...heartbeat, round: 2, transfersOver: 1 });
      const word = { kind: "timeout-now", from: 2n, to: 1n, term: 2 } as const;
      return [1, 2].map((transfer) =>
        one.exchange({ ...word, transfer }).some(({ kind }) => kind === "vote"),
      );
    };
    expect(bothWays("lateWordObeyed", obeys)).toEqual({ right: [false, true], wrong: [true, false] });
    // A transfer by an earlier leader than the one it heard, and by a later one, whose election ended the
    // promise to this one.
    const later = follower();
    later.exchange({ ...heartbeat, term: 4 });
    expect(votes(later, 300, 4, 9)).toBe(false);
    expect(votes(later, 300, 6, 1)).toBe(true);
  });

  test("restarted, it waits as if it had just heard a leader", () => {
    const again = () => {
      const one = new Single(1n, disk(three, log(2)), {}, clocks);
      return [70, 569].map((ms) => votes(one, ms, 5));
    };
    expect(bothWays("votesAfterRestart", again)).toEqual({ right: [false, false], wrong: [true, true] });
    const one = new Single(1n, disk(three, log(2)), {}, clocks);
    one.at(70);
    expect(votes(one, 570, 5)).toBe(true);
    // The restarted server has forgotten the transfers that it knew of.
    const asked = new Single(1n, disk(three, log(2)), {}, clocks);
    asked.at(70);
    expect([569, 570].map((ms) => votes(asked, ms, 5, 9))).toEqual([false, true]);
  });

  test("restarted with another timeout, it keeps its earlier promise", () => {
    /** The content of the disk after a server with this timeout and this disk has heard a leader. */
    const promised = (ms: number, hardState: HardState) => {
      const one = new Single(1n, { ...founding(three), hardState }, {}, { ...clocks, holdMs: ms });
      one.at(0);
      one.raft.step(heartbeat);
      const ready = one.raft.ready()!;
      expect(ready.messages).toMatchObject([{ kind: "heartbeat-answer", holdMs: ms }]);
      return ready.persist?.hardState;
    };
    const short = promised(200, founding(three).hardState)!;
    expect(short).toMatchObject({ term: 2, promisedMs: 200 });
    expect(promised(200, short)).toBeUndefined();
    const longer = promised(500, short)!;
    expect(longer).toMatchObject({ term: 2, promisedMs: 500 });
    expect(bothWays("promiseNotPersisted", () => promised(500, short)?.promisedMs)).toEqual({
      right: 500,
      wrong: undefined,
    });
    const again = (ms: number) => {
      const recovered = { ...founding(three), hardState: longer };
      const one = new Single(1n, recovered, {}, { ...clocks, holdMs: 200 });
      one.at(0);
      return votes(one, ms, 3);
    };
    expect(bothWays("promiseNotKept", () => again(499))).toEqual({ right: false, wrong: true });
    expect(again(500)).toBe(true);
  });

  test("once the longer promise from before the restart is over, the shorter one is written to disk", () => {
    const hardState = { term: 2, votedFor: 0n, commit: 1, promisedMs: 500 };
    const one = new Single(1n, { ...founding(three), hardState }, {}, { ...clocks, holdMs: 200 });
    const written = (ms: number) => {
      one.at(ms);
      one.raft.step(heartbeat);
      return one.raft.ready()?.persist?.hardState.promisedMs;
    };
    expect([0, 499, 500, 501].map(written)).toEqual([undefined, undefined, 200, undefined]);
  });

  test("a new server has made no promises: a core's first election need not wait", () => {
    expect(votes(new Single(1n, founding(three), {}, clocks), 0, 2)).toBe(true);
  });
});
