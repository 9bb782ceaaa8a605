import { expect, test } from "vitest";
import {
  acquireOf,
  ask,
  at,
  ballot,
  baseMs,
  benchSettings,
  message,
  readOf,
  readyAcceptor,
  releaseOf,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import { Kind, LeaseState, Message, Refusal } from "./message.js";
import { withFaults } from "../../../../../test/planted/switches.js";
import { answerOn } from "../admin/admin-answers.js";

/** The rules of section 3.4, one by one. Times are in ms; ε = 10, the longest lease is 1000. */

const lease = (acceptor: ReturnType<typeof readyAcceptor>) => {
  const entry = acceptor.entry("r");
  if (entry === undefined || entry.leaseOwner === "") return "none";
  return `${entry.leaseOwner} ${entry.leaseSequence} until ${entry.leaseExpiresWallMs - baseMs}${entry.released ? " released" : ""}`;
};

test("READ is answered with a promise and the lease on record", () => {
  const acceptor = readyAcceptor();
  const first = ask(acceptor, readOf("p.1", 0), at(0))!;
  expect([first.kind, first.number, first.leaseState]).toEqual([Kind.promise, ballot(0), LeaseState.none]);
  ask(acceptor, writeOf("p.1", 0, 0, 500), at(0));
  const own = ask(acceptor, readOf("p.1", 1), at(1))!;
  expect([own.kind, own.leaseOwner, own.leaseState, own.leaseExpiresWallMs]).toEqual([
    Kind.promise,
    "p.1",
    LeaseState.live,
    baseMs + 500,
  ]);
});

test("READ: a lower ballot, or an equal one of another owner, is refused with the promise", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, readOf("p.1", 5), at(5));
  for (const low of [readOf("q.1", 4), readOf("q.1", 5)]) {
    const reply = ask(acceptor, low, at(6));
    expect(wordOf(reply)).toBe("promised");
    expect(reply!.promised).toBe(ballot(5));
  }
  expect(wordOf(ask(acceptor, readOf("q.1", 6), at(6)))).toBe("promise");
});

test("READ: the promise is not raised while another's lease runs (F17)", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 0, 0, 500), at(0));
  const reply = ask(acceptor, readOf("q.1", 100), at(100))!;
  expect([wordOf(reply), reply.leaseOwner, reply.leaseExpiresWallMs]).toEqual(["held", "p.1", baseMs + 500]);
  expect(acceptor.entry("r")!.promisedNumber).toBe(ballot(0));
  expect(wordOf(ask(acceptor, writeOf("p.1", 0, 1, 600), at(101)))).toBe("ack");
});

test("WRITE: net G refuses it while another's lease runs, net B if another owner has a higher promise", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 0, 0, 500), at(0));
  expect(wordOf(ask(acceptor, writeOf("q.1", 5, 0, 500), at(5)))).toBe("held");
  const promising = readyAcceptor();
  ask(promising, readOf("p.1", 5), at(5));
  expect(wordOf(ask(promising, writeOf("q.1", 4, 0, 500), at(5)))).toBe("promised");
  expect(wordOf(ask(promising, writeOf("q.1", 5, 0, 500), at(5)))).toBe("promised");
  expect(lease(promising)).toBe("none");
});

test("ACQ is refused while another's lease runs, even when net G is planted out of WRITE", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 0, 0, 500), at(0));
  const attempt = () => wordOf(ask(acceptor, acquireOf("q.1", 5, 500), at(5)));
  expect(attempt()).toBe("held");
  expect(withFaults({ netGOff: true }, attempt)).toBe("held");
  expect(withFaults({ fastAcquireWithoutFreeTest: true }, attempt)).toBe("ack");
});

test("WRITE: it raises the promise to its own ballot", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 7, 0, 500), at(7));
  expect(acceptor.entry("r")).toMatchObject({ promisedNumber: ballot(7), promisedOwner: "p.1" });
});

test("WRITE: an older write of the same owner is stale, a repeated one is acknowledged again (F15)", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 0, 3, 500), at(0));
  expect(wordOf(ask(acceptor, writeOf("p.1", 0, 2, 900), at(1)))).toBe("stale");
  const before = { ...acceptor.entry("r") };
  expect(wordOf(ask(acceptor, writeOf("p.1", 0, 3, 500), at(50)))).toBe("ack");
  expect(acceptor.entry("r")).toEqual(before);
});

test("a repeated READ is promised again", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, readOf("p.1", 0), at(0));
  expect(wordOf(ask(acceptor, readOf("p.1", 0), at(50)))).toBe("promise");
});

test("a WRITE that renews shortens the guard on neither clock", () => {
  const run = () => {
    const acceptor = readyAcceptor();
    ask(acceptor, writeOf("p.1", 0, 0, 900, 900), at(0));
    ask(acceptor, writeOf("p.1", 0, 1, 300, 200), at(100));
    const { leaseExpiresWallMs, leaseExpiresMonoMs } = acceptor.entry("r")!;
    return [leaseExpiresWallMs - baseMs, leaseExpiresMonoMs - baseMs];
  };
  expect(run()).toEqual([900, 900]);
  expect(withFaults({ renewalShortensGuard: true }, run)).toEqual([300, 300]);
});

test("WRITE: after a release the next lease of the owner starts afresh, and may be shorter", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 0, 0, 900, 900), at(0));
  ask(acceptor, releaseOf("p.1", 0, 1), at(50));
  ask(acceptor, writeOf("p.1", 60, 0, 300, 200), at(60));
  const { leaseExpiresWallMs, leaseExpiresMonoMs, released } = acceptor.entry("r")!;
  expect([leaseExpiresWallMs - baseMs, leaseExpiresMonoMs - baseMs, released]).toEqual([300, 260, false]);
});

test("WRITE: the steady clock guards a little longer than the lease's length, for clocks of other rates", () => {
  const settings = benchSettings({ clockRateError: 0.01 });
  const acceptor = readyAcceptor(settings);
  ask(acceptor, writeOf("p.1", 0, 0, 500), at(0));
  expect(acceptor.entry("r")!.leaseExpiresMonoMs - baseMs).toBeCloseTo(500 * (1 + 0.02 / 0.99), 3);
});

test("an acceptor refuses a lease that is too long, ends too late or is over, and a ballot from the future", () => {
  const acceptor = readyAcceptor();
  const word = (request: Message, now = at(0)) => wordOf(ask(acceptor, request, now));
  expect(word(writeOf("p.1", 0, 0, 500, 1_001))).toBe("outOfBounds");
  expect(word(writeOf("p.1", 0, 0, 1_011, 500))).toBe("outOfBounds");
  expect(word(writeOf("p.1", 0, 0, 500), at(510))).toBe("outOfBounds");
  expect(word(writeOf("p.1", 12, 0, 500))).toBe("outOfBounds");
  expect(word(readOf("p.1", 12))).toBe("outOfBounds");
  expect(acceptor.size).toBe(0);
  expect(word(readOf("p.1", 11))).toBe("promise");
  expect(word(writeOf("p.1", 11, 0, 1_010, 1_000))).toBe("ack");
  expect(wordOf(ask(readyAcceptor(), writeOf("p.1", 0, 0, 500), at(509)))).toBe("ack");
});

test("bounds: the end is checked against the wall clock and not the upper bound, which may have run ahead", () => {
  const ahead = at(0, { hi: 5_000, mono: 5_000 });
  const run = () => wordOf(ask(readyAcceptor(), writeOf("p.1", 0, 0, 3_000), ahead));
  expect(run()).toBe("outOfBounds");
  expect(withFaults({ untilBoundByUpperClock: true }, run)).toBe("ack");
});

test("bounds: no ballot is believed for an upper bound that has run ahead", () => {
  expect(wordOf(ask(readyAcceptor(), readOf("p.1", 100), at(0, { hi: 5_000 })))).toBe("outOfBounds");
});

test("READ and WRITE of another view are refused; REL and QUERY count in any view", () => {
  const acceptor = readyAcceptor();
  expect(wordOf(ask(acceptor, { ...readOf("p.1", 0), view: 2 }, at(0)))).toBe("otherView");
  expect(wordOf(ask(acceptor, { ...writeOf("p.1", 0, 0, 500), view: 0 }, at(0)))).toBe("otherView");
  const reply = ask(acceptor, { ...message(Kind.query), view: 2 }, at(0))!;
  expect([reply.kind, reply.view]).toEqual([Kind.state, 1]);
  ask(acceptor, writeOf("p.1", 0, 0, 500), at(0));
  ask(acceptor, { ...releaseOf("p.1", 0, 1), view: 2 }, at(1));
  expect(acceptor.entry("r")!.released).toBe(true);
});

test("a full acceptor refuses further resources, and still serves those that it has", () => {
  const acceptor = readyAcceptor({ ...benchSettings(), resourcesMax: 2 });
  for (const resource of ["r", "s"]) ask(acceptor, { ...readOf("p.1", 0), resource }, at(0));
  expect(wordOf(ask(acceptor, { ...readOf("p.1", 0), resource: "t" }, at(0)))).toBe("full");
  expect(wordOf(ask(acceptor, { ...acquireOf("p.1", 0, 500), resource: "t" }, at(0)))).toBe("full");
  expect(wordOf(ask(acceptor, { ...writeOf("p.1", 0, 0, 500), resource: "s" }, at(0)))).toBe("ack");
  expect(acceptor.size).toBe(2);
});

test("a promise for one resource refuses nothing of another", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 9, 0, 500), at(9));
  expect(wordOf(ask(acceptor, { ...writeOf("q.1", 1, 0, 500), resource: "s" }, at(9)))).toBe("ack");
});

test("REL frees exactly the ballot that it names (F19)", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 5, 2, 500), at(5));
  for (const other of [
    releaseOf("q.1", 5, 3),
    releaseOf("p.2", 5, 3),
    releaseOf("p.1", 4, 3),
    releaseOf("p.1", 6, 3),
    releaseOf("p.1", 5, 2),
    { ...releaseOf("p.1", 5, 3), resource: "s" },
  ]) {
    expect(ask(acceptor, other, at(6))).toBeUndefined();
    expect(lease(acceptor)).toBe("p.1 2 until 500");
  }
  ask(acceptor, releaseOf("p.1", 5, 3), at(6));
  expect(lease(acceptor)).toBe("p.1 3 until 500 released");
  expect(acceptor.size).toBe(1);
});

test("a REL by another owner, or of another ballot, frees a lease only with its test planted out", () => {
  const freed = (release: Message) => {
    const acceptor = readyAcceptor();
    ask(acceptor, writeOf("p.1", 5, 2, 500), at(5));
    ask(acceptor, release, at(6));
    return acceptor.entry("r")!.released;
  };
  expect(withFaults({ releaseByAnybody: true }, () => freed(releaseOf("q.1", 5, 3)))).toBe(true);
  expect(withFaults({ unconditionalRelease: true }, () => freed(releaseOf("p.1", 4, 3)))).toBe(true);
});

test("a released lease blocks no other owner, and its late writes are stale", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 5, 0, 500), at(5));
  ask(acceptor, releaseOf("p.1", 5, 2), at(6));
  expect(wordOf(ask(acceptor, writeOf("p.1", 5, 1, 600), at(7)))).toBe("stale");
  expect(wordOf(ask(acceptor, writeOf("p.1", 5, 2, 600), at(7)))).toBe("stale");
  const read = ask(acceptor, readOf("q.1", 8), at(8))!;
  expect([read.kind, read.leaseState]).toEqual([Kind.promise, LeaseState.released]);
  expect(wordOf(ask(acceptor, writeOf("q.1", 8, 0, 500), at(8)))).toBe("ack");
});

test("another's lease is over only past ε on the wall clock and past its length on the steady clock", () => {
  const word = (now: ReturnType<typeof at>) => {
    const acceptor = readyAcceptor();
    ask(acceptor, writeOf("p.1", 0, 0, 500), at(0));
    return wordOf(ask(acceptor, readOf("q.1", 490), now));
  };
  expect(word(at(509))).toBe("held");
  expect(word(at(510))).toBe("promise");
  expect(word(at(510, { mono: 499 }))).toBe("held");
  expect(word(at(510, { mono: 500 }))).toBe("promise");
  expect(word(at(509, { mono: 5_000 }))).toBe("held");
  expect(word(at(600, { lo: 509 }))).toBe("held");
  // The planted mistakes move exactly these boundaries (P5, P6, P27).
  expect(withFaults({ safetyPeriodOneTickShort: true }, () => word(at(509)))).toBe("promise");
  expect(withFaults({ noSafetyPeriod: true }, () => word(at(500)))).toBe("promise");
  expect(withFaults({ overByEitherClock: true }, () => word(at(509, { mono: 500 })))).toBe("promise");
});

test("QUERY reports the entry and changes nothing", () => {
  const acceptor = readyAcceptor();
  const nothing = ask(acceptor, message(Kind.query), at(0))!;
  expect([nothing.kind, nothing.leaseState, nothing.promised]).toEqual([
    Kind.state,
    LeaseState.none,
    acceptor.floor,
  ]);
  expect(acceptor.size).toBe(0);
  ask(acceptor, { ...writeOf("p.1", 5, 1, 500), token: 42 }, at(5));
  const before = { ...acceptor.entry("r") };
  const reply = ask(acceptor, message(Kind.query, { instance: 9 }), at(6))!;
  expect(reply).toMatchObject({
    instance: 9,
    promised: ballot(5),
    leaseState: LeaseState.live,
    leaseOwner: "p.1",
    leaseNumber: ballot(5),
    leaseSequence: 1,
    leaseExpiresWallMs: baseMs + 500,
    leaseToken: 42,
  });
  expect(acceptor.entry("r")).toEqual(before);
});

test("answers name the request: instance, number, sequence and the acceptor's view", () => {
  const reply = ask(readyAcceptor(), { ...writeOf("p.1", 5, 3, 500), instance: 77 }, at(5));
  expect(reply).toMatchObject({ view: 1, instance: 77, number: ballot(5), sequence: 3 });
});

test("a refusal with two reasons names the lease, with the promise, so that a proposer with a slow clock learns the holder", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, writeOf("p.1", 9, 0, 500), at(0));
  for (const low of [readOf("q.1", 5), acquireOf("q.1", 5, 505), writeOf("q.1", 5, 0, 505)]) {
    const reply = ask(acceptor, low, at(5))!;
    expect([wordOf(reply), reply.leaseOwner, reply.promised]).toEqual(["held", "p.1", ballot(9)]);
  }
  ask(acceptor, releaseOf("p.1", 9, 1), at(6));
  expect(wordOf(ask(acceptor, readOf("q.1", 6), at(6)))).toBe("promised");
});

test("after the time was set back no lease is granted until the clock catches up, and the refusal says how long that takes", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, readOf("p.1", 0), at(0));
  // The steady clock runs on while the system time steps.
  const setBack = { ...at(50), wall: baseMs - 5_000, lo: baseMs - 5_000 };
  const above = ask(acceptor, readOf("q.1", 1), setBack)!;
  const below = ask(acceptor, readOf("q.1", -5_000), setBack)!;
  expect([above.refusal, below.refusal]).toEqual([Refusal.outOfBounds, Refusal.promised]);
  expect(answerOn(acceptor, "r", at(50))).toMatchObject({ state: "ready", readyInMs: 0 });
  const told = answerOn(acceptor, "r", setBack);
  expect(told.state).toBe("recovering");
  const laterMs = told.readyInMs + 1;
  const then = { ...setBack, wall: setBack.wall + laterMs, lo: setBack.lo + laterMs };
  const after = ask(acceptor, readOf("q.1", 1), then);
  expect([answerOn(acceptor, "r", then).state, after?.kind]).toEqual(["ready", Kind.promise]);
});
