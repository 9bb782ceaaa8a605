import { expect, test } from "vitest";
import { at, benchSettings } from "../../test/support/flease-bench.js";
import { numberAt } from "./protocol/ballot.js";
import { Kind, Message, Refusal } from "./protocol/message.js";
import { FleasePeer } from "./peer.js";

const nothing = () => undefined;

/** A member whose recovery wait is over, and what it told its peers. */
function member() {
  const told: number[] = [];
  const medium = { send: nothing, reaches: () => true, tell: (to: number) => told.push(to) > 0 };
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
  return { ask, told };
}

test("a holder that renews at an acceptor it missed does not stand back for those who wait", () => {
  const { ask, told } = member();
  const until = at(5_500).wall;
  const first = ask(1, "p.1", 5_000, { kind: Kind.acquire, until, duration: 500 });
  expect(first.kind).toBe(Kind.ack);
  expect(ask(2, "q.1", 5_001, { kind: Kind.read, waiting: true })).toMatchObject({ refusal: Refusal.held });
  ask(1, "p.1", 5_002, { kind: Kind.release, number: first.number, sequence: 1 });
  expect(told).toEqual([2]);
  // The waiter that was told has its time: others that want to begin stand back. One that holds and renews
  // does not.
  expect(ask(3, "s.1", 5_003, { kind: Kind.read })).toMatchObject({ kind: Kind.nack, refusal: Refusal.held });
  expect(ask(3, "s.1", 5_003, { kind: Kind.read, renewing: true })).toMatchObject({ kind: Kind.promise });
});

test("one that withdraws and waits on has nobody told, and is told first of the holder's release", () => {
  const { ask, told } = member();
  const lease = { until: at(5_500).wall, duration: 500 };
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
  // Another got the resource at the other acceptors.
  const vain = ask(2, "q.1", 5_003, { kind: Kind.acquire, waiting: true, ...lease });
  expect(vain.kind).toBe(Kind.ack);
  ask(2, "q.1", 5_004, { kind: Kind.release, waiting: true, number: vain.number, sequence: 1 });
  expect(told).toEqual([2]);
  ask(4, "u.1", 5_300, { kind: Kind.release, number: numberAt(at(5_003).wall), sequence: 1 });
  expect(told).toEqual([2, 2]);
});
