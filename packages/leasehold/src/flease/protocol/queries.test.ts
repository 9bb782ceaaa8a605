import { expect, test } from "vitest";
import {
  at,
  ballot,
  baseMs,
  benchSettings,
  leaseOf,
  message,
} from "../../../../../test/support/flease-bench.js";
import { Kind, LeaseState, copyMessage } from "./message.js";
import type { Message } from "./message.js";
import { Queries } from "./queries.js";
import type { QueryAnswer } from "./queries.js";

class QueryBench {
  readonly sent: { to: number; message: Message }[] = [];
  readonly answers: QueryAnswer[] = [];
  readonly queries = new Queries(benchSettings(), (to, out) =>
    this.sent.push({ to, message: copyMessage(out) }),
  );

  ask(ms = 0): void {
    this.queries.ask("r", "p.1", 100, at(ms), (answer) => this.answers.push(answer));
  }

  reply(from: number, fields: Partial<Message> = {}, ms = 1): void {
    const { instance } = this.sent.at(-1)!.message;
    this.queries.receive(from, message(Kind.state, { instance, ...fields }), at(ms));
  }
}

const live = (owner: string, numberMs = 0, until = 500) => leaseOf(owner, LeaseState.live, until, numberMs);

test("all members are asked, and a majority's reports are an answer", () => {
  const bench = new QueryBench();
  bench.ask();
  expect(bench.sent.map(({ to }) => to)).toEqual([0, 1, 2]);
  expect(bench.sent[0]!.message).toMatchObject({ kind: Kind.query, resource: "r", owner: "p.1", number: 0 });
  bench.reply(1);
  expect(bench.answers).toEqual([]);
  bench.reply(2);
  expect(bench.answers).toMatchObject([{ answered: true, held: false }]);
  bench.reply(0, live("q.1"));
  expect(bench.answers).toHaveLength(1);
});

test("the same lease from a majority is confirmed", () => {
  const bench = new QueryBench();
  bench.ask();
  bench.reply(0, { ...live("q.1", 5), leaseToken: 42 });
  bench.reply(2, { ...live("q.1", 5), leaseToken: 42 });
  expect(bench.answers).toEqual([
    { answered: true, held: true, confirmed: true, owner: "q.1", token: 42, until: baseMs + 500 },
  ]);
});

test.each([
  ["one has nothing", live("q.1"), {}],
  ["one has an older write", { ...live("q.1"), leaseSequence: 1 }, live("q.1")],
  ["one has another owner's of the same number", live("q.1"), live("s.1")],
  ["one finds it over", live("q.1"), leaseOf("q.1", LeaseState.over, 500)],
])("tentative when %s", (_why, first, second) => {
  const bench = new QueryBench();
  bench.ask();
  bench.reply(0, first);
  bench.reply(1, second);
  expect(bench.answers).toMatchObject([{ answered: true, held: true, confirmed: false, owner: "q.1" }]);
});

test("the highest ballot counts, whichever comes first", () => {
  for (const order of [
    [live("q.1", 9), live("s.1", 3)],
    [live("s.1", 3), live("q.1", 9)],
  ]) {
    const bench = new QueryBench();
    bench.ask();
    bench.reply(0, order[0]);
    bench.reply(1, order[1]);
    expect(bench.answers).toMatchObject([{ held: true, confirmed: false, owner: "q.1" }]);
  }
});

test("a lease that runs is not hidden by a withdrawn attempt with a higher ballot", () => {
  for (const state of [LeaseState.released, LeaseState.over]) {
    const answers = [live("s.1", 3), leaseOf("q.1", state, 500, 9)];
    for (const order of [answers, answers.toReversed()]) {
      const bench = new QueryBench();
      bench.ask();
      bench.reply(0, order[0]!);
      bench.reply(1, order[1]!);
      expect(bench.answers).toMatchObject([{ held: true, confirmed: false, owner: "s.1" }]);
    }
  }
});

test("only released and finished leases mean free", () => {
  for (const state of [LeaseState.released, LeaseState.over]) {
    const bench = new QueryBench();
    bench.ask();
    bench.reply(0, leaseOf("s.1", LeaseState.over, 400, 3));
    bench.reply(1, leaseOf("q.1", state, 500, 9));
    bench.reply(2, leaseOf("q.1", state, 500, 9));
    expect(bench.answers).toMatchObject([{ answered: true, held: false, confirmed: false }]);
  }
});

test("a release that one acceptor has received counts, though another has not", () => {
  const bench = new QueryBench();
  bench.ask();
  bench.reply(0, live("q.1", 9));
  bench.reply(1, { ...leaseOf("q.1", LeaseState.released, 500, 9), leaseSequence: 1 });
  expect(bench.answers).toMatchObject([{ answered: true, held: false }]);
});

test("a lease past its safety period on one's own clock is not reported as held", () => {
  for (const [ms, held] of [
    [509, true],
    [510, false],
  ] as const) {
    const bench = new QueryBench();
    bench.ask(450);
    bench.reply(0, live("q.1"), ms);
    bench.reply(1, live("q.1"), ms);
    expect(bench.answers).toMatchObject([{ held }]);
  }
});

test("a member that answers twice counts once", () => {
  const bench = new QueryBench();
  bench.ask();
  for (let times = 0; times < 3; times += 1) bench.reply(0, live("q.1"));
  expect(bench.answers).toEqual([]);
});

test("a query with too few answers in time is unanswered, and later answers are ignored", () => {
  const bench = new QueryBench();
  bench.ask();
  bench.reply(0, live("q.1"));
  expect(bench.queries.nextDueMono).toBe(at(100).mono);
  bench.queries.tick(at(99));
  expect(bench.answers).toEqual([]);
  bench.queries.tick(at(100));
  expect(bench.answers).toMatchObject([{ answered: false }]);
  bench.reply(1, live("q.1"));
  expect(bench.answers).toHaveLength(1);
  expect(bench.queries.nextDueMono).toBe(Infinity);
});

test("a reply counts only for the query whose handle it has", () => {
  const bench = new QueryBench();
  bench.ask();
  const first = bench.sent[0]!.message.instance;
  bench.ask();
  expect(bench.sent[3]!.message.instance).not.toBe(first);
  bench.reply(0);
  bench.queries.receive(1, message(Kind.state, { instance: first }), at(1));
  expect(bench.answers).toEqual([]);
});

test("a query uses no ballot: it has no number", () => {
  const bench = new QueryBench();
  bench.ask();
  expect(bench.sent.every(({ message: { number } }) => number === 0)).toBe(true);
  expect(ballot(0)).toBeGreaterThan(0);
});
