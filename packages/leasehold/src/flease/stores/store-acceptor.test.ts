import { expect, test } from "vitest";
import {
  acquireOf,
  at,
  benchSettings,
  message,
  readOf,
  releaseOf,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import type { Reading } from "../protocol/clock.js";
import { Kind, Message } from "../protocol/message.js";
import { withFaults } from "../../../../../test/planted/switches.js";
import { decodeEntry, encodeEntry } from "./codec.js";
import type { EntryRecord } from "./record.js";
import { forgettingWaitMs, StoreAcceptor } from "./store-acceptor.js";

/**
 * The acceptor's rules when one process after another acts as the acceptor. ε = 10, the longest lease is
 * 1000.
 */

const settings = benchSettings();
const acceptor = new StoreAcceptor(settings, "web-1");

/** One register, visited by processes with different clocks. */
class Register {
  content = "";
  writes = 0;

  get record(): EntryRecord | undefined {
    return this.content === "" ? undefined : decodeEntry(new TextEncoder().encode(this.content));
  }

  ask(request: Message, now: Reading): string {
    const reply = new Message();
    const { next, replies } = acceptor.handle(this.record, request, now, reply);
    const content = next === undefined ? this.content : new TextDecoder().decode(encodeEntry(next));
    if (content !== this.content) this.writes += 1;
    this.content = content;
    return wordOf(replies ? reply : undefined);
  }
}

test("a free resource is acquired at once: nothing has been forgotten, so there is nothing to wait for", () => {
  const register = new Register();
  expect(register.ask(acquireOf("p.1", 0, 500), at(0))).toBe("ack");
  expect(register.record).toMatchObject({ label: "web-1", entry: { leaseOwner: "p.1", token: 0 } });
});

test("only the wall clock decides that a lease is over, ε after its end", () => {
  const register = new Register();
  register.ask(acquireOf("p.1", 0, 500), at(0));
  // Another machine's steady clock is irrelevant here, however far it differs.
  expect(register.ask(readOf("q.1", 509), at(509, { mono: 1e9 }))).toBe("held");
  expect(register.ask(readOf("q.1", 510), at(510, { mono: -1e9 }))).toBe("promise");
});

test("without ε another owner gets in while the holder may still be ε behind", () => {
  const register = new Register();
  register.ask(acquireOf("p.1", 0, 500), at(0));
  withFaults({ noSafetyPeriod: true }, () =>
    expect(register.ask(readOf("q.1", 500), at(500))).toBe("promise"),
  );
});

test("the next process may be behind: it refuses, and changes nothing", () => {
  const register = new Register();
  register.ask(acquireOf("p.1", 0, 500), at(0));
  expect(register.ask(readOf("q.1", 510), at(510))).toBe("promise");
  // Ten behind: for this process the lease that the other considered over is unfinished. Refusing is safe.
  expect(register.ask(readOf("r.1", 520), at(509))).toBe("held");
  expect(register.ask(writeOf("q.1", 510, 0, 900), at(512))).toBe("ack");
  // It also sees the new lease as unfinished.
  expect(register.ask(readOf("r.1", 521), at(511))).toBe("held");
});

test("answers that change nothing need no write", () => {
  const register = new Register();
  register.ask(acquireOf("p.1", 0, 500), at(0));
  const { writes } = register;
  expect(register.ask(acquireOf("p.1", 0, 500), at(1))).toBe("ack");
  expect(register.ask(readOf("q.1", 1), at(1))).toBe("held");
  expect(register.ask(message(Kind.query), at(1))).toBe("state");
  expect(register.ask(releaseOf("q.1", 0, 1), at(1))).toBe("silence");
  expect(register.writes).toBe(writes);
});

test("no change restores a former content", () => {
  const register = new Register();
  const contents = new Set<string>();
  const requests: Message[] = [
    acquireOf("p.1", 0, 500),
    readOf("p.1", 1),
    writeOf("p.1", 1, 0, 500),
    writeOf("p.1", 1, 1, 600),
    releaseOf("p.1", 1, 2),
    readOf("q.1", 2),
    writeOf("q.1", 2, 0, 500),
    releaseOf("q.1", 2, 1),
    readOf("p.1", 3),
  ];
  for (const request of requests) {
    register.ask(request, at(4));
    contents.add(register.content);
  }
  expect([register.writes, contents.size]).toEqual([requests.length, requests.length]);
});

test("in an empty register only present ballots count: a forgotten promise may have been higher (F1)", () => {
  const waitMs = forgettingWaitMs(settings);
  // p received its promise at time 0 and was stopped. Meanwhile the store forgot it, waited, and counts
  // again.
  const late = () => new Register().ask(writeOf("p.1", 0, 0, waitMs + 500), at(waitMs));
  expect(late()).toBe("promised");
  expect(new Register().ask(writeOf("p.1", waitMs - 100, 0, waitMs + 500), at(waitMs))).toBe("ack");
  withFaults({ noFloor: true }, () => expect(late()).toBe("ack"));
});

test("all leases that a store has forgotten are over when it counts again, even by the slowest allowed clock", () => {
  const { maxClockSkewMs: skewMs, ttlMaxMs } = settings;
  // The latest end that may have been accepted at the moment of forgetting, by a clock that was ε ahead and
  // has since stepped back by ε.
  const untilMs = 3 * skewMs + ttlMaxMs;
  const holderAtMs = forgettingWaitMs(settings) - skewMs;
  expect(holderAtMs).toBeGreaterThanOrEqual(untilMs);
});

test("an entry from a future that no clock within ε can have reached is refused", () => {
  const register = new Register();
  register.ask(acquireOf("p.1", 40, 1_040, 1_000), at(40));
  expect(() => acceptor.checkTimes(register.record!, at(10))).not.toThrow();
  const skewed = expect.objectContaining({ code: "CLOCK_SKEW" });
  expect(() => acceptor.checkTimes(register.record!, at(8))).toThrow(skewed);
  register.ask(writeOf("p.1", 40, 1, 2_000, 1_000), at(1_040));
  expect(() => acceptor.checkTimes(register.record!, at(960))).toThrow(skewed);
});

test("a request to the holder stays in its record until the holder reads it or the tenure ends", () => {
  const register = new Register();
  register.ask(acquireOf("p.1", 0, 500), at(0));
  const asked = { by: "bob", broken: false, heard: false };
  const record = { ...register.record!, asked };
  const step = acceptor.handle(record, writeOf("p.1", 0, 1, 600), at(100), new Message());
  expect(step.heard).toEqual(asked);
  expect(step.next?.asked).toEqual({ ...asked, heard: true });
  const other = acceptor.handle(record, acquireOf("q.1", 600, 900), at(600), new Message());
  expect([other.heard, other.next?.asked]).toEqual([undefined, undefined]);
});
