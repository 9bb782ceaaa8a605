import { expect, test } from "vitest";
import {
  ProposerBench,
  acquireOf,
  ask,
  at,
  ballot,
  baseMs,
  benchSettings,
  readOf,
  readyAcceptor,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import { Acceptor } from "./acceptor.js";
import { Kind, Message, Refusal, copyMessage } from "./message.js";
import { FleasePeer } from "../peer.js";
import { withFaults } from "../../../../../test/planted/switches.js";

/**
 * Five mistakes of the reference implementation of Flease, and how this one avoids them. Each test first
 * shows the mistake, where it can be planted, and then that it is absent.
 */

const settings = benchSettings();

/**
 * p holds the resource through acceptors a and b; b is stopped cleanly and restarted; q asks b and c. Returns
 * how many hold it.
 */
function holdersAfterCleanRestart(): number {
  const [p, q] = [new ProposerBench("p.1"), new ProposerBench("q.1")];
  const acceptors = [readyAcceptor(), readyAcceptor(), readyAcceptor()];
  const exchange = (bench: ProposerBench, indices: number[], ms: number) => {
    for (const index of indices) {
      const reply = ask(acceptors[index]!, bench.last, at(ms));
      if (reply !== undefined) bench.proposer.receive(index, reply, at(ms));
    }
  };
  p.begin(0, true);
  exchange(p, [0, 1], 0);
  // There is no clean stop: whatever it announces, the new process has an empty memory.
  acceptors[1] = new Acceptor(settings, at(100));
  q.begin(200, true);
  exchange(q, [1, 2], 200);
  return [p, q].filter(({ proposer, instance }) => proposer.isHeld(instance!, at(200))).length;
}

test("1. a clean restart does not skip the recovery wait", () => {
  expect(withFaults({ noRecoveryWait: true }, holdersAfterCleanRestart)).toBe(2);
  expect(holdersAfterCleanRestart()).toBe(1);
});

test("1. no argument makes an acceptor start ready", () => {
  const acceptor = new Acceptor(settings, at(0));
  expect(acceptor.ready).toBe(false);
  for (const now of [at(0), at(5_000, { mono: 0 }), at(0, { mono: 5_000 }), at(1_029)]) {
    acceptor.wake(now);
    expect(acceptor.ready).toBe(false);
  }
});

test("2. the proposer of a restarted node does not use its own acceptor before it has recovered", () => {
  const sent: { to: number; message: Message }[] = [];
  const medium = {
    send: (to: number, message: Message) => void sent.push({ to, message: copyMessage(message) }),
    reaches: () => true,
    notify: () => false,
  };
  const { mono, wall } = at(0);
  const options = { owner: "a.2", seed: 1, acceptor: true };
  const peer = new FleasePeer(settings, options, mono, wall, medium, () => undefined);
  const instance = peer.proposer.acquire("r", 500, 1_000, true, at(0));
  // It asks its own acceptor by message, like all others, and gets no answer; one other acceptor is no
  // majority.
  expect(sent.map(({ to }) => to)).toEqual([0, 1, 2]);
  const reply = new Message();
  expect(peer.receive(0, sent[0]!.message, at(0), reply)).toBe(false);
  peer.receive(1, { ...new Message(), ...sent[1]!.message, kind: Kind.ack }, at(1), reply);
  expect(instance.holding).toBe(false);
  // With both other acceptors it need not wait.
  peer.receive(2, { ...new Message(), ...sent[2]!.message, kind: Kind.ack }, at(2), reply);
  expect(instance.holding).toBe(true);
});

test("3. a refusal that arrives before the acknowledgements is counted", () => {
  const bench = new ProposerBench();
  bench.begin(0, true);
  bench.nackPromised(0, 1, 5);
  bench.ack(1, 2);
  expect(bench.kinds).toEqual(["acquire"]);
  bench.nackPromised(2, 3, 5);
  // Two of three have refused, the first of them before anybody acknowledged: failure is certain by now.
  expect(bench.kinds).toEqual(["acquire", "release"]);
});

test("3. the outcome depends on how many answers there are of each kind, not on their order", () => {
  const outcome = (order: readonly string[]) => {
    const bench = new ProposerBench();
    bench.begin(0, true);
    for (const [from, answer] of order.entries()) {
      if (answer === "ack") bench.ack(from, 1);
      else bench.reply(from, Kind.nack, 1, { refusal: Refusal.full });
    }
    return bench.events.includes("acquired")
      ? "acquired"
      : bench.kinds.includes("release")
        ? "failed"
        : "open";
  };
  for (const order of [
    ["ack", "ack", "no"],
    ["ack", "no", "ack"],
    ["no", "ack", "ack"],
  ])
    expect(outcome(order)).toBe("acquired");
  for (const order of [
    ["ack", "no", "no"],
    ["no", "ack", "no"],
    ["no", "no", "ack"],
  ])
    expect(outcome(order)).toBe("failed");
});

test("4. a duplicated reply counts once, as an acknowledgement and as a refusal", () => {
  const acquires = () => {
    const bench = new ProposerBench();
    bench.begin(0, true);
    for (let times = 0; times < 3; times += 1) bench.ack(0, 1);
    return bench.events.includes("acquired");
  };
  expect(withFaults({ acksCountedNotAckers: true }, acquires)).toBe(true);
  expect(acquires()).toBe(false);
  const refused = new ProposerBench();
  refused.begin(0, true);
  for (let times = 0; times < 3; times += 1) refused.nackPromised(0, 1, 5);
  expect(refused.kinds).toEqual(["acquire"]);
});

/** The hash of Java's `String.hashCode`, 32 bits: node ids with equal hashes are easily found. */
function hashOf(text: string): number {
  let hash = 0;
  for (const char of text) hash = (Math.imul(31, hash) + char.charCodeAt(0)) | 0;
  return hash;
}

test("5. owners whose names collide in 32 bits are two owners", () => {
  const [left, right] = ["AaAa.1", "BBBB.1"];
  expect(hashOf(left)).toBe(hashOf(right));
  const acceptor = readyAcceptor();
  expect(wordOf(ask(acceptor, acquireOf(left, 0, 500), at(0)))).toBe("ack");
  // Neither the lease, nor the promise, nor the write in the same ballot is mistaken for the other owner's.
  expect(wordOf(ask(acceptor, acquireOf(right, 5, 505), at(5)))).toBe("held");
  expect(wordOf(ask(acceptor, writeOf(right, 0, 1, 600), at(5)))).toBe("held");
  const promising = readyAcceptor();
  expect(wordOf(ask(promising, readOf(left, 0), at(0)))).toBe("promise");
  expect(wordOf(ask(promising, readOf(right, 0), at(0)))).toBe("promised");
});

test("5. nor does one read its own lease in the other's", () => {
  const bench = new ProposerBench("BBBB.1");
  bench.begin(100, false);
  const lease = {
    leaseState: 1 as const,
    leaseOwner: "AaAa.1",
    leaseNumber: ballot(0),
    leaseExpiresWallMs: baseMs + 500,
  };
  for (const from of [0, 1]) bench.promise(from, 101, lease);
  expect(bench.events).toEqual(["refused AaAa.1"]);
});
