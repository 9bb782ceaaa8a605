import { expect, test } from "vitest";
import {
  ProposerBench,
  at,
  ballot,
  baseMs,
  benchSettings,
  leaseOf,
} from "../../../../../test/support/flease-bench.js";
import { Kind, LeaseState, Refusal, notListed } from "./message.js";
import { withFaults } from "../../../../../test/planted/switches.js";
import { Phase } from "./instance.js";

/** Acquisition (section 3.5) and its back-off. Members are 0, 1, 2; times are in ms; the timeout is 100. */

test("a fast attempt sends ACQ to all members, and a majority of acknowledgements decides it", () => {
  const bench = new ProposerBench();
  const instance = bench.begin(0, true);
  expect(bench.sent[0]!.to).toEqual([0, 1, 2]);
  expect(bench.last).toMatchObject({
    kind: Kind.acquire,
    owner: "p.1",
    number: ballot(0),
    sequence: 0,
    until: baseMs + 500,
    duration: 500,
    view: 1,
  });
  bench.ack(2, 20);
  expect(bench.events).toEqual([]);
  bench.ack(0, 30);
  expect(bench.events).toEqual(["acquired"]);
  expect(instance.tokenNumber).toBe(ballot(0));
  // The lease counts from a time before the request was sent.
  expect([instance.holdExpiresWallMs - baseMs, instance.holdExpiresMonoMs - baseMs]).toEqual([500, 500]);
});

test("the end counts from the lower bound, and validity is judged by the upper one", () => {
  const bench = new ProposerBench();
  const instance = bench.proposer.acquire("r", 500, 1_000, true, at(0, { lo: -3, hi: 4 }));
  bench.instance = instance;
  expect(bench.last.until - baseMs).toBe(497);
  bench.ack(0, 0);
  bench.ack(1, 0);
  expect(bench.proposer.isHeld(instance, at(490, { hi: 496 }))).toBe(true);
  expect(bench.proposer.isHeld(instance, at(490, { hi: 497 }))).toBe(false);
});

test("an attempt in two phases sends READ, and WRITE once a majority has promised", () => {
  const bench = new ProposerBench();
  bench.begin(0, false);
  bench.promise(0, 5);
  expect(bench.kinds).toEqual(["read"]);
  bench.promise(2, 8);
  expect(bench.kinds).toEqual(["read", "write"]);
  expect(bench.last).toMatchObject({ number: ballot(0), sequence: 0, until: baseMs + 508, token: ballot(0) });
  bench.promise(1, 9);
  bench.ack(0, 12);
  bench.ack(1, 12);
  expect(bench.events).toEqual(["acquired"]);
});

test("acceptors are counted, not messages (F15)", () => {
  const run = (fast: boolean) => {
    const bench = new ProposerBench();
    bench.begin(0, fast);
    const kind = fast ? Kind.ack : Kind.promise;
    for (let times = 0; times < 5; times += 1) bench.reply(1, kind, times);
    return [bench.events.length, bench.kinds.length];
  };
  expect([run(true), run(false)]).toEqual([
    [0, 1],
    [0, 1],
  ]);
  expect(withFaults({ acksCountedNotAckers: true }, () => [run(true), run(false)])).toEqual([
    [1, 1],
    [0, 2],
  ]);
});

test("a refusal counts whenever it arrives, and one alone decides nothing", () => {
  const first = new ProposerBench();
  first.begin(0, true);
  first.nackPromised(0, 1, 5);
  first.ack(1, 2);
  first.nackPromised(2, 3, 5);
  expect(first.kinds).toEqual(["acquire", "release"]);
  const single = new ProposerBench();
  single.begin(0, true);
  single.nackPromised(0, 1, 5);
  single.nackPromised(0, 1, 5);
  single.ack(1, 2);
  single.ack(2, 3);
  expect(single.events).toEqual(["acquired"]);
});

test("a majority that names the holder ends the attempt at once, with its withdrawal first", () => {
  const bench = new ProposerBench();
  bench.begin(0, true);
  bench.nackHeld(0, 10, "q.1", 400);
  bench.nackHeld(1, 10, "q.1", 400);
  expect(bench.kinds).toEqual(["acquire", "release"]);
  expect(bench.last).toMatchObject({ number: ballot(0), sequence: 1 });
  expect(bench.events).toEqual(["refused q.1"]);
  expect(bench.proposer.instanceOf("r")).toBeUndefined();
});

test("waiters retry one after another when the lease is over, if none was notified before", () => {
  const retry = (ahead: number) => {
    const bench = new ProposerBench();
    bench.begin(0, true);
    for (const from of [0, 1]) bench.nackHeld(from, 10, "q.1", 900, ahead);
    return bench.retriesMs[0]!;
  };
  // The lease is over at 900 + ε on the proposer's own clock. The first waiter comes within four round trips
  // of about 10 ms. The others, unless notified, come a quarter of the longest lease apart, and no later than
  // after sixteen such intervals.
  for (const [ahead, turnMs] of [
    [0, 0],
    [1, 250],
    [20, 5_000],
    [64, 16_000],
    [9_999, 16_000],
  ] as const) {
    expect(retry(ahead)).toBeGreaterThanOrEqual(890 + turnMs);
    expect(retry(ahead)).toBeLessThanOrEqual(910 + turnMs + 4 * 10);
  }
  // A participant on no list comes at a random time within half of the longest lease.
  expect(retry(notListed)).toBeGreaterThanOrEqual(890);
  expect(retry(notListed)).toBeLessThanOrEqual(910 + 500);
});

test("a waiter never sleeps longer than any lease can last, however far the clocks have stepped back", () => {
  const bench = new ProposerBench();
  bench.begin(0, true);
  for (const from of [0, 1]) bench.nackHeld(from, 10, "q.1", 66_000);
  expect(bench.retriesMs[0]!).toBeGreaterThanOrEqual(1_020);
  expect(bench.retriesMs[0]!).toBeLessThanOrEqual(1_020 + 40);
});

test("every unfinished lease that a READ reports blocks, not only the one with the highest ballot", () => {
  const run = () => {
    const bench = new ProposerBench();
    bench.begin(500, false);
    bench.promise(0, 500, leaseOf("q.1", LeaseState.live, 900, 1));
    bench.promise(1, 500, leaseOf("s.1", LeaseState.released, 900, 2));
    return bench.events.concat(bench.kinds);
  };
  expect(run()).toEqual(["refused q.1", "read"]);
  expect(withFaults({ onlyHighestBallotIsRead: true }, run)).toEqual(["read", "write"]);
});

test.each([
  ["no lease", {}, true],
  ["a released one", leaseOf("q.1", LeaseState.released, 900), true],
  ["one's own", leaseOf("p.1", LeaseState.live, 900), true],
  ["another incarnation's of the same node", leaseOf("p.0", LeaseState.live, 900), false],
  ["a live one", leaseOf("q.1", LeaseState.live, 900), false],
  ["one over by the acceptor's word and the own clock", leaseOf("q.1", LeaseState.over, 490), true],
  [
    "one over by the acceptor's word, but not past ε on the own clock",
    leaseOf("q.1", LeaseState.over, 491),
    false,
  ],
  ["one over by the own clock, but not by the acceptor's word", leaseOf("q.1", LeaseState.live, 300), false],
])("reading: %s", (_which, lease, free) => {
  const bench = new ProposerBench();
  bench.begin(500, false);
  bench.promise(0, 500, lease);
  bench.promise(1, 500);
  expect(bench.kinds.includes("write")).toBe(free);
});

test("late acknowledgements, after a cancellation, are ignored for ever (I12)", () => {
  const bench = new ProposerBench();
  const instance = bench.begin(0, true);
  const request = bench.last;
  bench.ack(0, 1);
  bench.proposer.cancel(instance);
  expect(bench.events).toEqual(["failed cancelled"]);
  expect(bench.kinds).toEqual(["acquire", "release"]);
  bench.ack(1, 2, request);
  bench.ack(2, 2, request);
  expect(bench.events).toEqual(["failed cancelled"]);
  expect(instance.holding).toBe(false);
});

test("a reused handle does not admit replies to its former operation", () => {
  const bench = new ProposerBench();
  bench.proposer.cancel(bench.begin(0, true));
  const old = bench.sent[0]!.message;
  const instance = bench.begin(0, true);
  expect(instance.index).toBe(old.instance);
  bench.ack(0, 1, old);
  bench.ack(1, 1, old);
  expect(bench.events).toEqual(["failed cancelled"]);
});

test("replies of another view, of a stranger or to another write are no votes", () => {
  const bench = new ProposerBench();
  bench.begin(0, true);
  for (const from of [0, 1, 2]) {
    bench.reply(from, Kind.ack, 1, { view: 2 });
    bench.reply(from, Kind.ack, 1, { sequence: 1 });
    bench.reply(from, Kind.ack, 1, { number: ballot(1) });
    bench.reply(from, Kind.ack, 1, { instance: 5 });
    bench.reply(from + 3, Kind.ack, 1);
    bench.reply(from, Kind.promise, 1);
  }
  expect(bench.events).toEqual([]);
});

test("a decision that arrives after the lease is over does not count (F9)", () => {
  const run = () => {
    const bench = new ProposerBench();
    const instance = bench.begin(0, true);
    bench.ack(0, 10);
    bench.ack(1, 500);
    return instance.holding;
  };
  expect(run()).toBe(false);
  expect(withFaults({ holderIgnoresExpiry: true }, run)).toBe(true);
});

test("a timed-out fast attempt is withdrawn, backs off, and goes on in two phases with a new ballot", () => {
  const bench = new ProposerBench();
  const instance = bench.begin(0, true);
  bench.ack(0, 1);
  expect(bench.proposer.nextDueMono).toBe(at(100).mono);
  bench.proposer.tick(at(99));
  expect(bench.kinds).toEqual(["acquire"]);
  bench.proposer.tick(at(100));
  expect(bench.kinds).toEqual(["acquire", "release"]);
  expect(instance.operation.phase).toBe(Phase.backoff);
  bench.proposer.tick(at(400));
  expect(bench.kinds).toEqual(["acquire", "release", "read"]);
  expect(bench.last.number).toBe(ballot(400));
  // The first attempt's acknowledgements no longer count (P17).
  bench.ack(1, 401, bench.sent[0]!.message);
  expect(bench.events).toEqual([]);
});

test("a timed-out READ leaves nothing to withdraw", () => {
  const bench = new ProposerBench();
  bench.begin(0, false);
  bench.promise(0, 1);
  bench.proposer.tick(at(100));
  bench.proposer.tick(at(400));
  expect(bench.kinds).toEqual(["read", "read"]);
});

test("the back-off is random, doubles with each try, and is never above half a lease", () => {
  const pauses = (seed: number) => {
    const bench = new ProposerBench("p.1", benchSettings(), seed);
    bench.begin(0, false);
    const result: number[] = [];
    for (let [tries, ms] = [0, 0]; tries < 10; tries += 1) {
      ms += 100;
      bench.proposer.tick(at(ms));
      const pauseMs = bench.proposer.nextDueMono - at(ms).mono;
      result.push(pauseMs);
      ms += Math.ceil(pauseMs);
      bench.proposer.tick(at(ms));
    }
    return result;
  };
  const runs = Array.from({ length: 200 }, (_, index) => pauses(index * 7_919 + 1));
  for (let tries = 0; tries < 10; tries += 1) {
    const ceiling = Math.min(250, 10 * 2 ** (tries + 1));
    const longest = Math.max(...runs.map((run) => run[tries]!));
    expect(longest).toBeLessThanOrEqual(ceiling);
    expect(longest).toBeGreaterThan(ceiling * 0.8);
    expect(Math.min(...runs.map((run) => run[tries]!))).toBeLessThan(ceiling * 0.2);
  }
});

test("an attempt without a majority of replies fails at its deadline with no quorum", () => {
  const bench = new ProposerBench();
  bench.begin(0, false, 500, 350);
  for (let ms = 0; ms <= 350; ms += 1) bench.proposer.tick(at(ms));
  expect(bench.events).toEqual(["failed no-quorum"]);
  expect(bench.proposer.nextDueMono).toBe(Infinity);
  expect(bench.proposer.instances.size).toBe(0);
});

test("an attempt that always loses its majority to others fails at its deadline with contention", () => {
  const bench = new ProposerBench();
  bench.begin(0, false, 500, 350);
  for (let ms = 0; ms <= 350; ms += 1) {
    if (bench.instance!.operation.phase === Phase.reading)
      for (const from of [0, 1]) bench.nackPromised(from, ms, ms);
    bench.proposer.tick(at(ms));
  }
  expect(bench.events).toEqual(["failed contention"]);
});

test("after a refusal the next ballot is above the promise", () => {
  const bench = new ProposerBench();
  bench.begin(0, false);
  for (const from of [0, 1]) bench.nackPromised(from, 1, 9);
  bench.proposer.tick(at(5));
  bench.proposer.tick(at(5));
  bench.proposer.tick(at(8));
  expect(bench.kinds).toEqual(["read", "read"]);
  expect(bench.last.number).toBe(ballot(9) + 1);
});

test("an attempt whose votes are split among several is refused only after six tries", () => {
  const bench = new ProposerBench();
  bench.begin(0, true);
  let ms = 0;
  for (; bench.events.length === 0 && ms < 2_000; ms += 1) {
    const { phase } = bench.instance!.operation;
    if (phase === Phase.fast || phase === Phase.reading) {
      bench.nackHeld(0, ms, "q.1", 900);
      bench.nackHeld(1, ms, "s.1", 901);
    }
    bench.proposer.tick(at(ms));
  }
  expect(bench.events).toEqual(["refused s.1"]);
  expect(bench.kinds.filter((kind) => kind === "read")).toHaveLength(5);
});

test("a holder reported only by a minority is forgotten at the timeout: without a majority there is no answer", () => {
  const bench = new ProposerBench();
  bench.begin(0, true, 500, 3_000);
  for (let ms = 0; ms <= 3_000; ms += 1) {
    const { phase } = bench.instance!.operation;
    if (phase === Phase.fast || phase === Phase.reading) bench.nackHeld(0, ms, "q.1", 4_000);
    bench.proposer.tick(at(ms));
  }
  expect(bench.kinds.length).toBeGreaterThan(7);
  expect(bench.events).toEqual(["failed no-quorum"]);
});

test("a try waits for members that are connected, and ends when these have all answered", () => {
  for (const [gone, phase] of [
    [[], Phase.fast],
    [[2], Phase.backoff],
  ] as const) {
    const bench = new ProposerBench();
    for (const member of gone) bench.gone.add(member);
    const { operation } = bench.begin(0, true);
    bench.nackHeld(1, 1, "q.1", 300);
    expect(operation.phase).toBe(Phase.fast);
    bench.ack(0, 2);
    // One refusal is not enough to consider it held: the proposer withdraws, and retries after a few round
    // trips.
    expect([operation.phase, bench.events]).toEqual([phase, []]);
  }
});

test("a waiter asks again when its WRITE is refused, because only READ and ACQ put it on a list", () => {
  for (const [waits, events] of [
    [false, ["refused q.1"]],
    [true, []],
  ] as const) {
    const bench = new ProposerBench();
    const { operation } = bench.proposer.acquire("r", 500, 10_000, false, at(0), waits);
    for (const from of [0, 1]) bench.promise(from, 1);
    for (const from of [0, 1]) bench.nackHeld(from, 2, "q.1", 300);
    expect([bench.events, operation.phase === Phase.backoff]).toEqual([events, waits]);
    if (!waits) continue;
    bench.proposer.tick(at(50));
    expect(bench.last).toMatchObject({ kind: Kind.read, waiting: true });
    for (const from of [0, 1]) bench.nackHeld(from, 51, "q.1", 300);
    expect(bench.events).toEqual(["refused q.1"]);
  }
});

test("one answer from the only connected member ends no try", () => {
  const bench = new ProposerBench();
  bench.gone.add(1).add(2);
  const { operation } = bench.begin(0, true);
  bench.nackHeld(0, 1, "q.1", 300);
  expect(operation.phase).toBe(Phase.fast);
});

test("a refusal for other reasons than a holder or a promise fails the try too", () => {
  const bench = new ProposerBench();
  bench.begin(0, true);
  for (const from of [0, 1]) bench.reply(from, Kind.nack, 1, { refusal: Refusal.stale });
  expect(bench.kinds).toEqual(["acquire", "release"]);
  expect(bench.instance!.operation.phase).toBe(Phase.backoff);
});

test("a majority of full acceptors ends the attempt at once, and a waiter retries after a pause", () => {
  const bench = new ProposerBench();
  bench.begin(0, true);
  bench.reply(0, Kind.nack, 1, { refusal: Refusal.full, fullBy: "greedy" });
  expect(bench.events).toEqual([]);
  bench.reply(1, Kind.nack, 1, { refusal: Refusal.full, fullBy: "greedy" });
  expect(bench.events).toEqual(["failed full by greedy"]);
});

test("a resource has one operation or hold at a time", () => {
  const bench = new ProposerBench();
  bench.begin(0, true);
  expect(() => bench.begin(0, true)).toThrow("in use");
});

test("of five members three acknowledgements grant, and three refusals end the try", () => {
  const settings = benchSettings({ members: ["a", "b", "c", "d", "e"] });
  const bench = new ProposerBench("p.1", settings);
  bench.begin(0, true);
  bench.nackPromised(0, 1, 5);
  bench.nackPromised(1, 1, 5);
  bench.ack(2, 1);
  bench.ack(3, 1);
  expect(bench.events).toEqual([]);
  bench.ack(4, 1);
  expect(bench.events).toEqual(["acquired"]);
  const losing = new ProposerBench("p.1", settings);
  losing.begin(0, true);
  for (const from of [0, 1, 2]) losing.nackPromised(from, 1, 5);
  expect(losing.kinds).toEqual(["acquire", "release"]);
});

test("one member is a majority of one", () => {
  const bench = new ProposerBench("p.1", benchSettings({ members: ["a"] }));
  bench.begin(0, true);
  bench.ack(0, 1);
  expect(bench.events).toEqual(["acquired"]);
});
