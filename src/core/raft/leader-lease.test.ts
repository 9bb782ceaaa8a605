import { describe, expect, test } from "vitest";
import { type Faults, withFaults } from "../../../test/planted/switches.js";
import { disk, log, Single } from "../../../test/scenarios/raft-runner/lab.js";
import { founding } from "./options.js";
import type { MemberId, Message, VoteRequest } from "./types.js";

const three = [1n, 2n, 3n];
const five = [1n, 2n, 3n, 4n, 5n];
const clocks = { holdMs: 500, clockRateError: 0.1 };
/** 500 · 0.9 / 1.1 */
const leaseMs = 409;

function bothWays<T>(mistake: keyof Faults, body: () => T): { right: T; wrong: T } {
  return { right: body(), wrong: withFaults({ [mistake]: true }, body) };
}

/** Server 1 of these leads in term 2, which 2 and 3 have acknowledged; the index of that is 2. */
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

/** At 1,000 ms it sends a round of heartbeats, which these answer at 1,300. */
function heard(one: Single, ...by: readonly MemberId[]): Single {
  one.at(1_000);
  const sent = one.tick().find(({ kind }) => kind === "heartbeat");
  const { round } = sent as Extract<Message, { kind: "heartbeat" }>;
  one.at(1_300);
  for (const from of by) one.exchange({ kind: "heartbeat-answer", from, to: 1n, term: 2, round });
  return one;
}

function certainAt(one: Single, ms: number, wallMs = ms): boolean {
  one.at(ms, wallMs);
  return one.raft.readIndexByClock() !== undefined;
}

describe("thesis 6.4.1: a leader knows by its clock for how long nobody else leads", () => {
  test("it counts from the sending of what a majority has answered, by the slowest clock for the fastest", () => {
    const one = heard(leaderOf(three), 2n);
    expect(one.raft.readIndexByClock()).toBe(2);
    expect([leaseMs, leaseMs + 1].map((ms) => certainAt(one, 1_000 + ms))).toEqual([true, false]);
    const late = () => certainAt(heard(leaderOf(three), 2n), 1_001 + leaseMs);
    expect(bothWays("timeFromTheAnswer", late)).toEqual({ right: false, wrong: true });
    expect(bothWays("timeIgnoresRates", late)).toEqual({ right: false, wrong: true });
  });

  test("each round that is answered renews it, and an answer to one that came early does not", () => {
    const one = heard(leaderOf(three), 2n);
    one.at(1_350);
    one.tick();
    one.exchange({ kind: "heartbeat-answer", from: 3n, to: 1n, term: 2, round: 1 });
    expect(certainAt(one, 1_420)).toBe(false);
    one.exchange({ kind: "heartbeat-answer", from: 3n, to: 1n, term: 2, round: 2 });
    expect([1_420, 1_350 + leaseMs, 1_351 + leaseMs].map((ms) => certainAt(one, ms))).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("a majority has to have answered, of the voters", () => {
    const ofFive = bothWays("timeByTheFirst", () => certainAt(heard(leaderOf(five), 2n), 1_300));
    expect(ofFive).toEqual({ right: false, wrong: true });
    expect(certainAt(heard(leaderOf(five), 2n, 5n), 1_300)).toBe(true);
    const byLearner = bothWays("timeByLearners", () => certainAt(heard(leaderOf(three, [4n]), 4n), 1_300));
    expect(byLearner).toEqual({ right: false, wrong: true });
  });

  test("a suspended machine's steady clock stands still: the clock that went further counts", () => {
    const suspended = () => certainAt(heard(leaderOf(three), 2n), 1_301, 61_301);
    expect(bothWays("timeIgnoresSuspension", suspended)).toEqual({ right: false, wrong: true });
    expect(certainAt(heard(leaderOf(three), 2n), 1_301, 0)).toBe(true);
    expect(certainAt(heard(leaderOf(three), 2n), 1_410, 0)).toBe(false);
  });

  test("who has been told to stand may hear of it at any time: the leader's time is over for the whole term", () => {
    const { right, wrong } = bothWays("timeAfterTheWord", () => {
      const one = heard(leaderOf(three), 2n);
      one.raft.transferLeader(2n);
      expect(one.drain().early).toMatchObject([{ kind: "timeout-now", to: 2n }]);
      const before = certainAt(one, 1_300);
      // It has not stood: the transfer is given up, and heartbeats are answered again.
      one.tick(9);
      const after = heard(one, 2n, 3n).raft;
      expect(after.status()).toMatchObject({ role: "leader", transferTo: 0n });
      return [before, after.readIndexByClock() !== undefined];
    });
    expect({ right, wrong }).toEqual({ right: [false, false], wrong: [true, true] });
  });

  test("not before it has committed something, nor as a follower, nor where servers do not hold", () => {
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

describe("a server holds to the leader that it hears, by its own clock", () => {
  const request = (term: number, transfer = false): VoteRequest => ({
    kind: "vote",
    from: 3n,
    to: 1n,
    term,
    lastIndex: 9,
    lastTerm: term - 1,
    transfer,
  });

  function votes(one: Single, ms: number, term: number, transfer = false): boolean {
    one.at(ms);
    return one.exchange(request(term, transfer)).some((each) => each.kind === "vote-answer" && each.granted);
  }

  /** It hears 2 lead in term 2, at 100 ms. */
  function follower(): Single {
    const one = new Single(1n, founding(three), {}, clocks);
    one.at(100);
    one.exchange({ kind: "heartbeat", from: 2n, to: 1n, term: 2, commit: 1, round: 1 });
    expect(one.raft.status()).toMatchObject({ leader: 2n, term: 2 });
    return one;
  }

  test("its ticks may have come in a bunch: neither does it stand, nor vote", () => {
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

  test("a later term that comes by another message does not set it free", () => {
    const votesAt = (ms: number, transfer = false) => {
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

  test("the leader itself may ask for another one", () => {
    expect(votes(follower(), 300, 3, true)).toBe(true);
  });

  test("begun again, it waits as if it had heard a leader just before", () => {
    const again = () => {
      const one = new Single(1n, disk(three, log(2)), {}, clocks);
      return [70, 569].map((ms) => votes(one, ms, 5));
    };
    expect(bothWays("votesAfterRestart", again)).toEqual({ right: [false, false], wrong: [true, true] });
    const one = new Single(1n, disk(three, log(2)), {}, clocks);
    one.at(70);
    expect(votes(one, 570, 5)).toBe(true);
    const forced = new Single(1n, disk(three, log(2)), {}, clocks);
    expect(votes(forced, 70, 5, true)).toBe(true);
  });

  test("a new one has promised nothing: a core's first election need not wait", () => {
    expect(votes(new Single(1n, founding(three), {}, clocks), 0, 2)).toBe(true);
  });
});
