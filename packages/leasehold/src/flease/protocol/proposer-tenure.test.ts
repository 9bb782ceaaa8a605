import { expect, test } from "vitest";
import {
  ProposerBench,
  acquireOf,
  ask,
  at,
  ballot,
  baseMs,
  readyAcceptor,
  wordOf,
} from "../../../../../test/support/flease-bench.js";
import { Kind } from "./message.js";
import { withFaults } from "../../../../../test/planted/switches.js";
import { Phase } from "./instance.js";
import { StateHash } from "./state-hash.js";

/**
 * Holding, renewing, releasing and losing (sections 3.5 and 3.6). Leases are 500 ms unless stated otherwise.
 */

test("a tenure is held until its end on either clock, whichever comes first", () => {
  const held = (now: ReturnType<typeof at>) => {
    const bench = new ProposerBench();
    return bench.proposer.isHeld(bench.hold(0), now);
  };
  expect(held(at(499))).toBe(true);
  expect(held(at(500))).toBe(false);
  expect(held(at(499, { mono: 500 }))).toBe(false);
  expect(held(at(400, { hi: 500 }))).toBe(false);
});

test("the remaining time of a tenure is the lesser of the two clocks', and 0 ends it for ever", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  expect(bench.proposer.remainingMs(instance, at(100, { mono: 150 }))).toBe(350);
  expect(bench.proposer.remainingMs(instance, at(200, { hi: 230 }))).toBe(270);
  expect(bench.proposer.remainingMs(instance, at(500))).toBe(0);
  expect(bench.events).toEqual(["acquired", "lapsed expired"]);
  expect(bench.proposer.remainingMs(instance, at(100))).toBe(0);
  expect(bench.events).toEqual(["acquired", "lapsed expired"]);
});

test("a holder that caches its last answer believes in a lease that is over (P33)", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  expect(withFaults({ heldIsCached: true }, () => bench.proposer.isHeld(instance, at(900)))).toBe(true);
});

test("a renewal is the next write in the tenure's ballot, with the tenure's token", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.proposer.renew(instance, 500, at(200));
  expect(bench.last).toMatchObject({
    kind: Kind.write,
    number: ballot(0),
    sequence: 1,
    until: baseMs + 700,
    duration: 500,
    token: ballot(0),
  });
  bench.ack(0, 210);
  bench.ack(2, 210);
  expect(bench.events).toEqual(["acquired", "renewed"]);
  expect([
    instance.holdExpiresWallMs - baseMs,
    instance.holdExpiresMonoMs - baseMs,
    instance.tokenNumber,
  ]).toEqual([700, 700, ballot(0)]);
});

test("a shorter renewal asks for no less than is held, on either clock", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0, 900);
  bench.proposer.renew(instance, 450, at(100));
  expect([bench.last.until - baseMs, bench.last.duration]).toEqual([900, 800]);
  bench.ack(0, 110);
  bench.ack(1, 110);
  expect([instance.holdExpiresWallMs - baseMs, instance.holdExpiresMonoMs - baseMs]).toEqual([900, 900]);
});

test.each([
  ["before the acknowledgements", [2, 0, 1]],
  ["between them", [0, 2, 1]],
  ["after them", [0, 1, 2]],
])("a higher promise, told %s, makes the next renewal two-phase", (_when, order) => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.proposer.renew(instance, 500, at(100));
  const first = bench.last;
  for (const from of order) {
    if (from === 2) bench.nackPromised(2, 105, 90, first);
    else bench.ack(from, 105, first);
  }
  expect(bench.events).toEqual(["acquired", "renewed"]);
  bench.proposer.renew(instance, 500, at(200));
  expect(bench.kinds.slice(-1)).toEqual(["read"]);
  bench.promise(0, 205);
  bench.promise(1, 205);
  expect(bench.last).toMatchObject({ kind: Kind.write, number: ballot(200), sequence: 0, token: ballot(0) });
  bench.ack(0, 210);
  bench.ack(1, 210);
  // The new ballot is decided: from here on one round trip suffices again.
  bench.proposer.renew(instance, 500, at(300));
  expect(bench.last).toMatchObject({ kind: Kind.write, number: ballot(200), sequence: 1 });
  expect(instance.tokenNumber).toBe(ballot(0));
});

test("a promise below the tenure's ballot changes nothing", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.nackPromised(2, 5, -20, bench.sent[0]!.message);
  bench.proposer.renew(instance, 500, at(100));
  expect(bench.kinds.at(-1)).toBe("write");
});

test("a renewal with too few acknowledgements continues in two phases while the hold runs", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.proposer.renew(instance, 500, at(100));
  bench.ack(0, 110);
  // A third of the remaining 400 ms is longer than a phase's usual timeout.
  bench.proposer.tick(at(233));
  expect(bench.kinds.at(-1)).toBe("write");
  bench.proposer.tick(at(234));
  expect(bench.kinds.slice(-2)).toEqual(["write", "read"]);
  expect(bench.proposer.isHeld(instance, at(234))).toBe(true);
  bench.promise(0, 240);
  bench.promise(1, 240);
  bench.ack(0, 250);
  bench.ack(1, 250);
  expect(bench.events).toEqual(["acquired", "renewed"]);
  expect(instance.holdExpiresWallMs - baseMs).toBe(740);
});

test("a fresh ballot is never written without a READ (P16)", () => {
  const renewed = () => {
    const bench = new ProposerBench();
    const instance = bench.hold(0);
    bench.proposer.renew(instance, 500, at(100));
    bench.proposer.tick(at(240));
    return bench.kinds.at(-1);
  };
  expect(renewed()).toBe("read");
  expect(withFaults({ renewalWithFreshBallotWithoutRead: true }, renewed)).toBe("write");
});

test("a renewal that fails twice leaves the hold as it was, and is not released (P35)", () => {
  const run = () => {
    const bench = new ProposerBench();
    const instance = bench.hold(0);
    bench.proposer.renew(instance, 500, at(100));
    bench.proposer.tick(at(240));
    bench.promise(0, 250);
    bench.promise(1, 250);
    bench.proposer.tick(at(350));
    return { bench, instance };
  };
  const { bench, instance } = run();
  expect(bench.events).toEqual(["acquired", "not renewed"]);
  expect(bench.kinds).not.toContain("release");
  expect(instance.holdExpiresWallMs - baseMs).toBe(500);
  expect(bench.proposer.isHeld(instance, at(499))).toBe(true);
  // The next renewal begins with a READ.
  bench.proposer.renew(instance, 500, at(360));
  expect(bench.last).toMatchObject({ kind: Kind.read, number: ballot(360) });
  expect(withFaults({ abandonedRenewalReleased: true }, () => run().bench.kinds)).toContain("release");
});

test("acknowledgements of a ballot that was replaced count for nothing", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.proposer.renew(instance, 500, at(100));
  const first = bench.last;
  bench.proposer.tick(at(240));
  for (const from of [0, 1, 2]) bench.ack(from, 241, first);
  expect(instance.operation.phase).toBe(Phase.reading);
  expect(instance.holdExpiresWallMs - baseMs).toBe(500);
});

test("a lapsed tenure is not reopened by late acknowledgements, and a renewal starts none (P25, P43)", () => {
  const run = () => {
    const bench = new ProposerBench();
    const instance = bench.hold(0);
    bench.proposer.renew(instance, 900, at(450));
    bench.ack(0, 505);
    bench.ack(1, 505);
    return {
      events: bench.events,
      held: bench.proposer.isHeld(instance, at(506)),
      token: instance.tokenNumber,
    };
  };
  expect(run()).toMatchObject({ events: ["acquired", "not renewed", "lapsed expired"], held: false });
  expect(withFaults({ lapsedTenureReopened: true }, run)).toMatchObject({ held: true, token: ballot(0) });
  expect(withFaults({ lateRenewalStartsTenure: true }, run).held).toBe(true);
});

test("a lapsed tenure cannot be renewed", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.proposer.renew(instance, 500, at(600));
  expect(bench.kinds).toEqual(["acquire"]);
  expect(bench.events).toEqual(["acquired", "lapsed expired", "not renewed"]);
});

test("a second renewal while one is under way is refused", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.proposer.renew(instance, 500, at(100));
  bench.proposer.renew(instance, 500, at(101));
  expect(bench.events).toEqual(["acquired", "not renewed"]);
  expect(bench.kinds).toEqual(["acquire", "write"]);
});

test("a release ends the hold before any message is sent (P12)", () => {
  const heldWhenSent = () => {
    const bench = new ProposerBench();
    const instance = bench.hold(0);
    bench.proposer.release(instance, at(100));
    expect(bench.sent.at(-1)!.to).toEqual([0, 1, 2]);
    expect(bench.last).toMatchObject({ kind: Kind.release, number: ballot(0), sequence: 1 });
    return instance.holding;
  };
  expect(heldWhenSent()).toBe(false);
  expect(withFaults({ releaseBeforeStopping: true }, heldWhenSent)).toBe(true);
});

test("late acknowledgements after a release are ignored for ever (I12)", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.proposer.renew(instance, 500, at(100));
  const request = bench.last;
  bench.proposer.release(instance, at(110));
  expect(bench.events).toEqual(["acquired", "not renewed"]);
  for (const from of [0, 1, 2]) bench.ack(from, 111, request);
  expect(instance.holding).toBe(false);
  expect(bench.proposer.instances.size).toBe(0);
  // Its REL overtakes the renewal still in flight.
  expect(bench.last).toMatchObject({ kind: Kind.release, number: ballot(0), sequence: 2 });
});

test("a release names each ballot of the tenure, replaced and abandoned ones too", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0, 1_000);
  // Renewed in a second ballot …
  bench.proposer.renew(instance, 1_000, at(100));
  bench.proposer.tick(at(400));
  for (const from of [0, 1]) bench.promise(from, 405);
  for (const from of [0, 1]) bench.ack(from, 410);
  // … and a third one that was abandoned with its write in flight.
  bench.proposer.renew(instance, 1_000, at(420));
  bench.proposer.tick(at(750));
  for (const from of [0, 1]) bench.promise(from, 755);
  bench.proposer.tick(at(975));
  expect(bench.events).toEqual(["acquired", "renewed", "not renewed"]);
  bench.sent.length = 0;
  bench.proposer.release(instance, at(980));
  expect(bench.kinds).toEqual(["release", "release", "release"]);
  expect(new Set(bench.sent.map(({ message }) => message.number))).toEqual(
    new Set([ballot(0), ballot(400), ballot(750)]),
  );
});

test.each([
  ["by a look", (bench: ProposerBench) => void bench.proposer.isHeld(bench.instance!, at(650))],
  ["by a late acknowledgement", (bench: ProposerBench) => [0, 1].forEach((from) => bench.ack(from, 650))],
  ["by its time-out", (bench: ProposerBench) => bench.proposer.tick(at(650))],
])(
  "a tenure found lapsed %s in the middle of its renewal still releases what that may have written",
  (_how, look) => {
    const bench = new ProposerBench();
    const instance = bench.hold(0, 500);
    bench.proposer.renew(instance, 900, at(350));
    bench.proposer.tick(at(450));
    for (const from of [0, 1]) bench.promise(from, 455);
    expect(bench.last).toMatchObject({ kind: Kind.write, number: ballot(450) });
    look(bench);
    expect(bench.events).toEqual(["acquired", "not renewed", "lapsed expired"]);
    bench.sent.length = 0;
    bench.proposer.release(instance, at(660));
    const numbers = bench.sent.map(({ message }) => message.number);
    expect(numbers.filter((number) => number === ballot(450))).toHaveLength(1);
  },
);

test("ballots of expired leases are no longer released, so that the list stays short", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0, 500);
  for (let ms = 100; ms < 5_000; ms += 200) {
    bench.proposer.renew(instance, 500, at(ms));
    bench.nackPromised(2, ms, ms + 5);
    for (const from of [0, 1]) bench.reply(from, bench.last.kind === Kind.read ? Kind.promise : Kind.ack, ms);
    if (bench.last.kind === Kind.write) for (const from of [0, 1]) bench.ack(from, ms);
  }
  expect(bench.proposer.isHeld(instance, at(5_000))).toBe(true);
  expect(bench.sent.length).toBeGreaterThan(40);
  expect(instance.pastBallots.length).toBeLessThanOrEqual(4);
});

// Clock faults

test("a hold that a jump of the wall clock ended early is not released: the promise to the program still holds", () => {
  const bench = new ProposerBench();
  const acceptors = [readyAcceptor(), readyAcceptor(), readyAcceptor()];
  const instance = bench.begin(0, true);
  for (const acceptor of acceptors) ask(acceptor, { ...bench.last, resource: "r", owner: "p.1" }, at(0));
  for (const from of [0, 1]) bench.ack(from, 1);
  expect(bench.proposer.remainingMs(instance, at(100))).toBe(400);
  const jumped = at(101, { hi: 3_600_000 });
  expect(bench.proposer.isHeld(instance, jumped)).toBe(false);
  bench.sent.length = 0;
  bench.proposer.release(instance, jumped);
  for (const { message } of bench.sent) for (const acceptor of acceptors) ask(acceptor, message, at(102));
  const others = acceptors.map((acceptor) => wordOf(ask(acceptor, acquireOf("q.1", 103, 600), at(103))));
  expect(others).toEqual(["held", "held", "held"]);
});

test("a hold that ended in time is released, also when the wall clock was a reading's granularity ahead", () => {
  for (const now of [at(500), at(499, { hi: 501 })]) {
    const bench = new ProposerBench();
    const instance = bench.hold(0);
    expect(bench.proposer.isHeld(instance, now)).toBe(false);
    bench.proposer.release(instance, now);
    expect(bench.kinds.at(-1)).toBe("release");
  }
});

test("a clock fault drops holds and attempts, releases nothing, and goes on as another owner", () => {
  const bench = new ProposerBench();
  const instance = bench.hold(0);
  bench.proposer.acquire("s", 500, 1_000, true, at(0));
  bench.sent.length = 0;
  bench.proposer.restart("p.2");
  expect(bench.events).toEqual(["acquired", "lapsed clock-fault", "failed clock-fault"]);
  expect(bench.kinds).toEqual([]);
  expect(bench.proposer.isHeld(instance, at(1))).toBe(false);
  bench.proposer.release(instance, at(1));
  expect(bench.kinds).toEqual([]);
  bench.begin(2, true);
  expect(bench.last.owner).toBe("p.2");
});

test("after a clock fault ballots follow the clock again, also when it had run an hour ahead", () => {
  const bench = new ProposerBench();
  bench.proposer.cancel(bench.begin(3_600_000, true));
  bench.proposer.restart("p.2");
  bench.begin(10, true);
  expect(bench.last.number).toBe(ballot(10));
});

test("a reply to the old owner finds nothing, even if the new one makes a ballot of the same number", () => {
  const bench = new ProposerBench();
  const held = bench.hold(0);
  bench.proposer.acquire("s", 500, 1_000, true, at(0));
  const requests = bench.sent.map(({ message }) => message);
  bench.proposer.restart("p.2");
  bench.proposer.release(held, at(0));
  bench.events.length = 0;
  bench.proposer.acquire("t", 500, 1_000, true, at(0));
  bench.proposer.acquire("u", 500, 1_000, true, at(0));
  const fresh = bench.sent.slice(2).map(({ message }) => message);
  // The clock was set back: ballot numbers repeat.
  expect(fresh.map(({ number }) => number)).toEqual(requests.map(({ number }) => number));
  for (const request of requests) for (const from of [0, 1, 2]) bench.ack(from, 1, request);
  expect(bench.events).toEqual([]);
  for (const from of [0, 1]) bench.ack(from, 1, fresh[0]!);
  expect(bench.events).toEqual(["acquired"]);
});

// The state as a value

const digestOf = (bench: ProposerBench) => {
  const hash = new StateHash();
  bench.proposer.hashInto(hash);
  return hash.digest();
};

test("a clone continues from the original's state and does not affect it", () => {
  const bench = new ProposerBench();
  bench.begin(0, false);
  bench.promise(0, 5);
  const digest = digestOf(bench);
  const events: string[] = [];
  const sent: number[] = [];
  const copy = bench.proposer.clone({
    send: (to, out) => void sent.push(to, out.kind),
    reaches: () => true,
    acquired: () => events.push("acquired"),
    refused: () => events.push("refused"),
    failed: () => events.push("failed"),
    renewed: () => events.push("renewed"),
    lapsed: () => events.push("lapsed"),
  });
  const hash = new StateHash();
  copy.hashInto(hash);
  expect(hash.digest()).toBe(digest);
  expect(copy.nextDueMono).toBe(bench.proposer.nextDueMono);
  copy.tick(at(100));
  copy.tick(at(400));
  expect(sent).toEqual([0, Kind.read, 1, Kind.read, 2, Kind.read]);
  expect(digestOf(bench)).toBe(digest);
  expect(bench.kinds).toEqual(["read"]);
  bench.promise(1, 6);
  expect(bench.kinds).toEqual(["read", "write"]);
  expect(events).toEqual([]);
});

test("each step changes the hash, and equal histories give equal hashes", () => {
  const walk = () => {
    const bench = new ProposerBench();
    const digests = [digestOf(bench)];
    const steps = [
      () => bench.begin(0, false),
      () => bench.promise(0, 5),
      () => bench.nackPromised(2, 5, 9),
      () => bench.promise(1, 6),
      () => bench.ack(0, 7),
      () => bench.ack(1, 8),
      () => bench.proposer.renew(bench.instance!, 500, at(100)),
      () => bench.proposer.tick(at(300)),
      () => bench.proposer.isHeld(bench.instance!, at(900)),
      () => bench.proposer.release(bench.instance!, at(900)),
    ];
    for (const step of steps) {
      step();
      digests.push(digestOf(bench));
    }
    return digests;
  };
  const digests = walk();
  expect(new Set(digests).size).toBe(digests.length);
  expect(walk()).toEqual(digests);
});
