import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  acquireOf,
  ask,
  at,
  baseMs,
  readOf,
  readyAcceptor,
  releaseOf,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import { StateHash } from "./state-hash.js";
import type { Acceptor } from "./acceptor.js";

/** Breaking a lease (3.13). */

const owners = ["p.1", "q.1", "r.1"];

interface Deed {
  kind: "acquire" | "read" | "release" | "write" | "bar";
  owner: string;
  ms: number;
  sequence: number;
}

const someOwner = fc.constantFrom(...owners);
const someMs = fc.integer({ min: 0, max: 2_000 });
const deeds: fc.Arbitrary<Deed> = fc.record({
  kind: fc.constantFrom("acquire", "read", "release", "write", "bar"),
  owner: someOwner,
  ms: someMs,
  sequence: fc.integer({ min: 0, max: 3 }),
});

function perform(acceptor: Acceptor, deed: Deed, nowMs: number): void {
  const now = at(nowMs);
  if (deed.kind === "bar") acceptor.bar("r", deed.owner, now);
  else if (deed.kind === "acquire") ask(acceptor, acquireOf(deed.owner, deed.ms, nowMs + 500), now);
  else if (deed.kind === "read") ask(acceptor, readOf(deed.owner, deed.ms), now);
  else if (deed.kind === "release") ask(acceptor, releaseOf(deed.owner, deed.ms, 9), now);
  else ask(acceptor, writeOf(deed.owner, deed.ms, deed.sequence, nowMs + 500), now);
}

/** The first millisecond at which the acceptor considers its lease over. */
function overFrom(acceptor: Acceptor, nowMs: number): number {
  const entry = acceptor.entry("r");
  for (let ms = nowMs; ; ms += 1) if (entry === undefined || acceptor.isOver(entry, at(ms))) return ms;
}

test("a bar ends no lease: the lease runs to its end and blocks the others until then", () => {
  fc.assert(
    fc.property(fc.array(deeds, { maxLength: 12 }), someOwner, (history, owner) => {
      const acceptor = readyAcceptor();
      let nowMs = 0;
      for (const deed of history) perform(acceptor, deed, (nowMs += 100));
      const before = { ...acceptor.entry("r"), over: overFrom(acceptor, nowMs) };
      const barred = acceptor.bar("r", owner, at(nowMs));
      const after = { ...acceptor.entry("r"), over: overFrom(acceptor, nowMs) };
      expect(after).toEqual({ ...before, ...(barred && { barredOwner: owner }) });
      if (!barred) return;
      const other = owners.find((each) => each !== owner)!;
      const wall = after.over - 1;
      // Above every promise, so that only the guard can refuse it.
      const word = wordOf(
        ask(acceptor, acquireOf(other, 1_000_000, wall + 500), { ...at(wall), wall: baseMs + 1_000_000 }),
      );
      expect(["held", "outOfBounds"]).toContain(word);
      expect(acceptor.entry("r")?.leaseOwner).toBe(owner);
    }),
  );
});

test("the barred owner is refused whatever it asks for, but may still release", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, acquireOf("p.1", 0, 500), at(0));
  expect(acceptor.bar("r", "q.1", at(10))).toBe(false);
  expect(acceptor.bar("other", "p.1", at(10))).toBe(false);
  expect(acceptor.bar("r", "p.1", at(10))).toBe(true);
  expect(wordOf(ask(acceptor, writeOf("p.1", 0, 1, 700), at(20)))).toBe("barred");
  expect(wordOf(ask(acceptor, readOf("p.1", 20), at(20)))).toBe("barred");
  expect(wordOf(ask(acceptor, acquireOf("p.1", 20, 700), at(20)))).toBe("barred");
  expect(acceptor.entry("r")).toMatchObject({ promisedNumber: acquireOf("p.1", 0, 500).number });
  ask(acceptor, releaseOf("p.1", 0, 1), at(30));
  expect(acceptor.entry("r")?.released).toBe(true);
  expect(wordOf(ask(acceptor, acquireOf("q.1", 30, 500), at(30)))).toBe("ack");
});

test("a bar lasts until the entry is discarded: through silence and a successor, but not a restart", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, acquireOf("p.1", 0, 500), at(0));
  acceptor.bar("r", "p.1", at(10));
  const successor = acceptor.clone();
  expect(wordOf(ask(successor, acquireOf("q.1", 600, 1_000), at(600)))).toBe("ack");
  expect(wordOf(ask(successor, acquireOf("p.1", 1_100, 1_600), at(1_100)))).toBe("barred");
  acceptor.beginRecoveryWait(at(20));
  expect(acceptor.entry("r")?.barredOwner).toBe("p.1");
  acceptor.wake(at(20_000));
  acceptor.discardIdle(at(20_000), 10);
  expect(acceptor.entry("r")).toBeUndefined();
  expect(wordOf(ask(acceptor, acquireOf("p.1", 20_000, 20_500), at(20_000)))).toBe("ack");
});

test("a bar is kept as long as the broken lease may run: other acceptors may have received the bar later", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, acquireOf("p.1", 0, 500), at(0));
  acceptor.bar("r", "p.1", at(10));
  const released = acceptor.clone();
  // The other acceptors accepted a renewal until 1,009 before the bar reached them, and let that lease run
  // until 2,009.
  acceptor.discardIdle(at(2_400), 10);
  expect(wordOf(ask(acceptor, writeOf("p.1", 0, 1, 2_900), at(2_400)))).toBe("barred");
  acceptor.discardIdle(at(2_600), 10);
  expect(acceptor.entry("r")).toBeUndefined();
  // After its release, a participant holds nothing.
  ask(released, releaseOf("p.1", 0, 1), at(20));
  released.discardIdle(at(1_100), 10);
  expect(released.entry("r")).toBeUndefined();
});

test("a bar counts in the hash of an acceptor, and a clone has it too", () => {
  const acceptor = readyAcceptor();
  ask(acceptor, acquireOf("p.1", 0, 500), at(0));
  const copy = acceptor.clone();
  acceptor.bar("r", "p.1", at(10));
  expect(digest(acceptor)).not.toBe(digest(copy));
  expect(digest(acceptor.clone())).toBe(digest(acceptor));
});

function digest(acceptor: Acceptor): string {
  const hash = new StateHash();
  acceptor.hashInto(hash);
  return String(hash.digest());
}
