import { expect, test } from "vitest";
import { at, benchSettings } from "../../../../test/support/flease-bench.js";
import { numberAt } from "./protocol/ballot.js";
import { Kind, Message, Refusal } from "./protocol/message.js";
import { FleasePeer } from "./peer.js";

const nothing = () => undefined;

/** A member whose recovery wait is over, and the messages that it sent to its peers. */
function member() {
  const told: number[] = [];
  const medium = { send: nothing, reaches: () => true, notify: (to: number) => told.push(to) > 0 };
  const start = at(0);
  const peer = new FleasePeer(
    benchSettings(),
    { owner: "a.1", seed: 1, acceptor: true },
    start.mono,
    start.wall,
    medium,
    nothing,
  );
  const now = at(5_000);
  peer.maintain(peer.read(now.mono, now.wall));
  const ask = (from: number, owner: string, ms: number, fields: Partial<Message>): Message => {
    const time = at(ms);
    const request = Object.assign(
      new Message(),
      { view: 1, resource: "r", owner, number: numberAt(time.wall) },
      fields,
    );
    const reply = new Message();
    peer.receive(from, request, peer.read(time.mono, time.wall), reply);
    return reply;
  };
  return { ask, told, peer };
}

const lease = { until: at(5_500).wall, duration: 500 };

/** A waiter, peer 2, was just notified that `r` was released by its holder, peer 1. */
function withToldWaiter() {
  const bench = member();
  const first = bench.ask(1, "p.1", 5_000, { kind: Kind.acquire, ...lease });
  expect(first.kind).toBe(Kind.ack);
  const waits = bench.ask(2, "q.1", 5_001, { kind: Kind.read, waiting: true });
  expect(waits).toMatchObject({ refusal: Refusal.held });
  bench.ask(1, "p.1", 5_002, { kind: Kind.release, number: first.number, sequence: 1 });
  expect(bench.told).toEqual([2]);
  return { ...bench, first };
}

test.each<[string, number, string, Partial<Message>]>([
  ["a READ", 3, "s.1", { kind: Kind.read }],
  ["a READ that claims to renew", 3, "s.1", { kind: Kind.read, renewing: true }],
  ["a WRITE without a READ", 3, "s.1", { kind: Kind.write, ...lease }],
  ["a READ of the last holder that claims to renew", 1, "p.1", { kind: Kind.read, renewing: true }],
  [
    "a WRITE in the ballot that was released",
    1,
    "p.1",
    { kind: Kind.write, number: numberAt(at(5_000).wall), sequence: 2, ...lease },
  ],
])("%s does not overtake a waiter that was told", (_what, from, owner, fields) => {
  const { ask } = withToldWaiter();
  expect(ask(from, owner, 5_003, fields)).toMatchObject({ kind: Kind.nack, refusal: Refusal.held });
  expect(ask(2, "q.1", 5_004, { kind: Kind.acquire, ...lease })).toMatchObject({ kind: Kind.ack });
});

test("a ballot promised before the waiter was notified continues", () => {
  const { ask, told } = member();
  const first = ask(1, "p.1", 5_000, { kind: Kind.acquire, until: at(5_100).wall, duration: 100 });
  expect(ask(2, "q.1", 5_001, { kind: Kind.read, waiting: true })).toMatchObject({ refusal: Refusal.held });
  const promised = ask(3, "s.1", 5_150, { kind: Kind.read });
  expect(promised.kind).toBe(Kind.promise);
  // The holder's release arrives late.
  ask(1, "p.1", 5_151, { kind: Kind.release, number: first.number, sequence: 1 });
  expect(told).toEqual([2]);
  const write = { kind: Kind.write, number: promised.number, ...lease };
  expect(ask(3, "s.1", 5_152, write)).toMatchObject({ kind: Kind.ack });
});

/** A member at its minimum admission. */
function overloaded() {
  const bench = member();
  const look = () => {
    for (let looks = 0; looks < 20; looks += 1) bench.peer.admission.look(Infinity);
  };
  return { ...bench, look };
}

test.each<[string, Partial<Message>]>([
  ["READs that claim to renew", { kind: Kind.read, renewing: true }],
  ["WRITEs without a READ", { kind: Kind.write, ...lease }],
])("under full load no more %s are let in than honest requests", (_what, fields) => {
  const admitted = (kind: Partial<Message>) => {
    const { ask, look } = overloaded();
    look();
    let count = 0;
    for (let each = 0; each < 2_000; each += 1) {
      const number = numberAt(at(5_000).wall) + each;
      const reply = ask(1, "p.1", 5_000, { ...kind, number, resource: `r${each}` });
      if (reply.refusal !== Refusal.busy) count += 1;
    }
    return count;
  };
  const honest = admitted({ kind: Kind.read });
  expect(honest).toBeLessThan(30);
  expect(admitted(fields)).toBe(honest);
});

test("under full load a holder renews in one phase and in two, and a promised ballot is written", () => {
  const { ask, look } = overloaded();
  const held = Array.from({ length: 500 }, (_, each) => `r${each}`);
  for (const resource of held) ask(1, "p.1", 5_000, { kind: Kind.acquire, resource, ...lease });
  const promised = ask(1, "p.1", 5_000, { kind: Kind.read, resource: "promised" });
  look();
  for (const resource of held) {
    const number = numberAt(at(5_000).wall);
    const write = { kind: Kind.write, number, sequence: 1, resource, ...lease };
    expect(ask(1, "p.1", 5_010, write)).toMatchObject({ kind: Kind.ack });
    expect(ask(1, "p.1", 5_011, { kind: Kind.read, resource })).toMatchObject({ kind: Kind.promise });
    const again = { ...write, number: numberAt(at(5_011).wall), sequence: 0 };
    expect(ask(1, "p.1", 5_012, again)).toMatchObject({ kind: Kind.ack });
  }
  const write = { kind: Kind.write, number: promised.number, resource: "promised", ...lease };
  expect(ask(1, "p.1", 5_013, write)).toMatchObject({ kind: Kind.ack });
});

test("a waiter that withdraws and keeps waiting causes no notification, and is notified first of the holder's release", () => {
  const { ask, told } = member();
  const holder = ask(1, "p.1", 5_000, { kind: Kind.acquire, ...lease });
  for (const [peer, owner] of [
    [2, "q.1"],
    [3, "s.1"],
  ] as const)
    expect(ask(peer, owner, 5_001, { kind: Kind.acquire, waiting: true, ...lease }).refusal).toBe(
      Refusal.held,
    );
  ask(1, "p.1", 5_002, { kind: Kind.release, number: holder.number, sequence: 1 });
  expect(told).toEqual([2]);
  // Another participant got the resource at the other acceptors.
  const vain = ask(2, "q.1", 5_003, { kind: Kind.acquire, waiting: true, ...lease });
  expect(vain.kind).toBe(Kind.ack);
  ask(2, "q.1", 5_004, { kind: Kind.release, waiting: true, number: vain.number, sequence: 1 });
  expect(told).toEqual([2]);
  ask(4, "u.1", 5_300, { kind: Kind.release, number: numberAt(at(5_003).wall), sequence: 1 });
  expect(told).toEqual([2, 2]);
});

test("five connections that invent names don't take a sixth one's place", () => {
  const { ask, peer } = member();
  for (const name of ["a", "b", "c", "d", "e"]) peer.introduce(`${name}.9`, "address 10.0.0.1");
  peer.introduce("z.9", "address 10.0.0.2");
  ask(1, "p.1", 5_000, { kind: Kind.acquire, ...lease });
  let invented = 0;
  for (const [from, name] of ["a", "b", "c", "d", "e"].entries()) {
    const owner = `${name}.9`;
    for (let each = 0; each < 25_000; each += 1)
      ask(10 + from, owner, 5_001, { kind: Kind.release, waiting: true, resource: `i${(invented += 1)}` });
    // The writer may wait for the resource that it wrote, at its own expense.
    ask(10 + from, owner, 5_002, { kind: Kind.acquire, resource: `own ${name}`, ...lease });
    const { number } = ask(10 + from, owner, 5_002, { kind: Kind.read, resource: `own ${name}` });
    ask(10 + from, owner, 5_003, {
      kind: Kind.release,
      waiting: true,
      number,
      sequence: 1,
      resource: `own ${name}`,
    });
  }
  expect(peer.waiters.size).toBeLessThanOrEqual(5);
  const late = ask(20, "z.9", 5_004, { kind: Kind.read, waiting: true });
  expect([late.refusal, late.ahead]).toEqual([Refusal.held, 0]);
});
