import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  acquireOf,
  ask,
  at,
  ballot,
  benchSettings,
  message,
  readOf,
  readyAcceptor,
  releaseOf,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import { Acceptor } from "./acceptor.js";
import { Kind } from "./message.js";
import type { Message } from "./message.js";
import { withFaults } from "../../../../../test/planted/switches.js";
import { StateHash } from "./state-hash.js";

/**
 * Sections 3.7 and 3.8: silence, floor and forgetting. Also the state as a value. ε = 10, the longest lease
 * is 1000.
 */

const settings = benchSettings();
const requests: Message[] = [
  readOf("p.1", 0),
  writeOf("p.1", 0, 0, 500),
  acquireOf("p.1", 0, 500),
  message(Kind.query),
  releaseOf("p.1", 0, 1),
];

test("a recovering acceptor answers nothing, not even queries", () => {
  const acceptor = new Acceptor(settings, at(0));
  for (const request of requests) expect(ask(acceptor, request, at(1_029))).toBeUndefined();
  expect([acceptor.ready, acceptor.size]).toEqual([false, 0]);
});

test.each([
  ["both clocks", at(1_030), true],
  ["the wall clock short of a millisecond", at(1_029, { mono: 5_000 }), false],
  ["the steady clock short of a millisecond", at(5_000, { mono: 999 }), false],
  ["the lower bound, not the wall clock, short of a millisecond", at(5_000, { lo: 1_029 }), false],
  ["the steady clock at its bound", at(5_000, { mono: 1_000 }), true],
])("the wait ends by %s", (_which, now, ready) => {
  const acceptor = new Acceptor(settings, at(0));
  acceptor.wake(now);
  expect(acceptor.ready).toBe(ready);
  expect(acceptor.recoveryWaitLeftMs(now) === 0).toBe(ready);
});

test("each planted wait that is too short lets an acceptor answer before its recovery wait is over (P1, P2, P3)", () => {
  const readyAt = (ms: number, fault: object) =>
    withFaults(fault, () => {
      const acceptor = new Acceptor(settings, at(0));
      acceptor.wake(at(ms));
      return acceptor.ready;
    });
  expect(readyAt(0, { noRecoveryWait: true })).toBe(true);
  expect([readyAt(999, { waitOnlyTtlMax: true }), readyAt(1_000, { waitOnlyTtlMax: true })]).toEqual([
    false,
    true,
  ]);
  expect(readyAt(1_010, { waitTtlMaxAndOneSkew: true })).toBe(true);
});

test("the rest of the recovery wait counts down to 0", () => {
  const acceptor = new Acceptor(settings, at(0));
  expect([0, 400, 1_029].map((ms) => acceptor.recoveryWaitLeftMs(at(ms)))).toEqual([1_030, 630, 1]);
});

test("at the rejoin every ballot that may have been promised before is below the floor (F1, F12)", () => {
  const rejoined = () => {
    const acceptor = new Acceptor(settings, at(0));
    acceptor.wake(at(1_030));
    return acceptor;
  };
  // A clock ε ahead of this one could have used the numbers up to 10 + 1 before the start; the floor is 2ε +
  // 1.
  expect(rejoined().floor).toBe(ballot(21));
  expect(wordOf(ask(rejoined(), readOf("p.1", 21), at(1_030)))).toBe("promised");
  expect(wordOf(ask(rejoined(), writeOf("p.1", 11, 0, 1_500), at(1_030)))).toBe("promised");
  expect(ask(rejoined(), readOf("p.1", 11), at(1_030))!.promised).toBe(ballot(21));
  expect(wordOf(ask(rejoined(), readOf("p.1", 22), at(1_030)))).toBe("promise");
  const old = () => wordOf(ask(rejoined(), writeOf("p.1", 11, 0, 1_500), at(1_030)));
  expect(withFaults({ noFloor: true }, old)).toBe("ack");
});

test("silence after a clock fault forgets nothing, and lasts as long as the first", () => {
  const run = () => {
    const acceptor = readyAcceptor();
    ask(acceptor, writeOf("p.1", 0, 0, 900, 900), at(0));
    acceptor.beginRecoveryWait(at(100));
    expect(ask(acceptor, readOf("q.1", 100), at(100))).toBeUndefined();
    acceptor.wake(at(1_129));
    expect(acceptor.ready).toBe(false);
    acceptor.wake(at(1_130));
    expect(acceptor.ready).toBe(true);
    return acceptor.entry("r")?.leaseOwner;
  };
  expect(run()).toBe("p.1");
  expect(withFaults({ clockFaultForgets: true }, run)).toBeUndefined();
});

test("the floor never moves back, also when clocks do", () => {
  const acceptor = readyAcceptor();
  const before = acceptor.floor;
  acceptor.beginRecoveryWait(at(-90_000));
  acceptor.wake(at(-80_000, { mono: 5_000 }));
  expect(acceptor.ready).toBe(true);
  expect(acceptor.floor).toBe(before);
});

test("an idle entry is discarded one second and 3ε after its promise, and the floor rises to that promise (F20)", () => {
  const run = () => {
    const acceptor = readyAcceptor();
    ask(acceptor, writeOf("p.1", 0, 0, 300, 300), at(0));
    acceptor.discardIdle(at(1_030), 10);
    expect(acceptor.size).toBe(1);
    acceptor.discardIdle(at(1_031), 10);
    expect(acceptor.size).toBe(0);
    return wordOf(ask(acceptor, readOf("q.1", 0), at(1_031)));
  };
  expect(run()).toBe("promised");
  expect(withFaults({ discardWithoutFloor: true }, run)).toBe("promise");
});

test("a lease that is not over stays, however old its promise", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 0, 0, 1_000, 1_000), at(0));
  ask(acceptor, writeOf("p.1", 0, 1, 1_900, 1_000), at(900));
  acceptor.discardIdle(at(1_500), 10);
  expect(acceptor.size).toBe(1);
  ask(acceptor, releaseOf("p.1", 0, 2), at(1_500));
  acceptor.discardIdle(at(1_500), 10);
  expect(acceptor.size).toBe(0);
});

test("an entry created after a discard starts at the floor", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, readOf("p.1", 0), at(0));
  acceptor.discardIdle(at(2_000), 10);
  ask(acceptor, readOf("q.1", 2_000), at(2_000));
  expect(acceptor.floor).toBe(ballot(0));
  expect(acceptor.entry("r")!.promisedNumber).toBe(ballot(2_000));
});

test("a call visits at most the given number of entries, and the next one continues from there", () => {
  const acceptor = readyAcceptor();
  for (let index = 0; index < 10; index += 1)
    ask(acceptor, { ...readOf("p.1", 0), resource: `r${index}` }, at(0));
  acceptor.discardIdle(at(5_000), 4);
  expect(acceptor.size).toBe(6);
  acceptor.discardIdle(at(5_000), 4);
  expect(acceptor.size).toBe(2);
  acceptor.discardIdle(at(5_000), 4);
  expect(acceptor.size).toBe(0);
});

// The state as a value

const digestOf = (acceptor: Acceptor) => {
  const hash = new StateHash();
  acceptor.hashInto(hash);
  return hash.digest();
};

const step = fc.record({
  kind: fc.constantFrom(Kind.read, Kind.write, Kind.acquire, Kind.release),
  owner: fc.constantFrom("p.1", "q.1"),
  ms: fc.nat(30),
  sequence: fc.nat(2),
  resource: fc.constantFrom("r", "s"),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function applyTo(acceptor: Acceptor, { kind, owner, ms, sequence, resource }: Step): void {
  ask(acceptor, { ...writeOf(owner, ms, sequence, ms + 500), kind, resource }, at(30));
}

test("a clone is equal at first, and changes to one leave the other alone", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 15 }), fc.array(step, { maxLength: 15 }), (before, after) => {
      const acceptor = readyAcceptor();
      for (const each of before) applyTo(acceptor, each);
      const copy = acceptor.clone();
      const digest = digestOf(acceptor);
      expect(digestOf(copy)).toBe(digest);
      for (const each of after) applyTo(copy, each);
      expect(digestOf(acceptor)).toBe(digest);
      for (const each of after) applyTo(acceptor, each);
      expect(digestOf(copy)).toBe(digestOf(acceptor));
    }),
  );
});

test("states hash alike exactly when they are alike, in whatever order the entries came", () => {
  const stateOf = (acceptor: Acceptor) =>
    JSON.stringify([
      acceptor.ready,
      acceptor.floor,
      [...acceptor.entries()].sort(([a], [b]) => (a < b ? -1 : 1)),
    ]);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), fc.array(step, { maxLength: 6 }), (left, right) => {
      const [first, second] = [readyAcceptor(), readyAcceptor()];
      for (const each of left) applyTo(first, each);
      for (const each of right) applyTo(second, each);
      expect(digestOf(first) === digestOf(second)).toBe(stateOf(first) === stateOf(second));
    }),
  );
});

test("when a recovery wait began, on either clock, counts in the hash", () => {
  const digests = [at(0), at(1), at(0, { mono: 1 })].map((now) => digestOf(new Acceptor(settings, now)));
  expect(new Set(digests).size).toBe(3);
});

/** The payer of an entry depends on its owner and on who is connected: it isn't protocol state. */
const uncounted = new Set(["payer"]);

test("every field of an entry counts in the hash", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 0, 1, 500), at(0));
  const entry = acceptor.entry("r")!;
  const digestWith = (changes: object) =>
    digestOf(Acceptor.loaded(settings, "r", { ...entry, ...changes }, acceptor.floor, at(0)));
  const plain = digestWith({});
  expect(digestWith({})).toBe(plain);
  for (const [name, value] of Object.entries(entry) as [string, unknown][]) {
    if (uncounted.has(name)) continue;
    const other = typeof value === "string" ? "x" : typeof value === "boolean" ? !value : Number(value) + 1;
    expect([name, digestWith({ [name]: other }) === plain]).toEqual([name, false]);
  }
});
