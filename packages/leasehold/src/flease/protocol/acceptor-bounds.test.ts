import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  ask,
  at,
  ballot,
  baseMs,
  benchSettings,
  message,
  readyAcceptor,
} from "../../../../../test/support/flease-bench.js";
import { ballotsPerMs, numberAt } from "./ballot.js";
import { Kind } from "./message.js";
import { withFaults } from "../../../../../test/planted/switches.js";

/** Requests with arbitrary numbers: anywhere, near the clock and at the limit of a double. */
const { maxClockSkewMs, ttlMaxMs } = benchSettings();
const ms = fc.integer({ min: -50, max: 50 });
const number = fc.oneof(
  ms.map((time) => ballot(time)),
  fc.tuple(ms, fc.nat({ max: 2 * ballotsPerMs })).map(([time, more]) => ballot(time) + more),
  fc.maxSafeNat(),
  fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER),
);
const time = fc.oneof(
  fc.integer({ min: -2_000, max: 2_000 }).map((after) => baseMs + after),
  fc.double({ min: 0, max: Number.MAX_SAFE_INTEGER, noNaN: true }),
);
const request = fc.record({
  kind: fc.constantFrom(Kind.read, Kind.write, Kind.acquire, Kind.release, Kind.query),
  owner: fc.constantFrom("p.1", "q.1"),
  number,
  token: number,
  sequence: fc.oneof(fc.nat({ max: 3 }), fc.constant(0xffff_ffff)),
  until: time,
  duration: fc.oneof(
    fc.nat({ max: 2_000 }),
    fc.double({ min: 0, max: Number.MAX_SAFE_INTEGER, noNaN: true }),
  ),
});
const asked = fc.record({ afterMs: fc.nat({ max: 40 }), fields: request });

/** Sends all requests and checks the acceptor's state after each. */
function bounded(requests: readonly { afterMs: number; fields: object }[]): boolean {
  const acceptor = readyAcceptor();
  let nowMs = 0;
  for (const { afterMs, fields } of requests) {
    nowMs += afterMs;
    ask(acceptor, message(Kind.read, fields), at(nowMs));
    const entry = acceptor.entry("r");
    if (entry === undefined) continue;
    const highest = numberAt(baseMs + nowMs + maxClockSkewMs + 1);
    const latest = baseMs + nowMs + maxClockSkewMs + ttlMaxMs;
    if (entry.promisedNumber > highest || entry.leaseNumber > highest || entry.token > entry.leaseNumber)
      return false;
    if (entry.leaseExpiresWallMs > latest || entry.leaseExpiresMonoMs > latest) return false;
  }
  return true;
}

const numRuns = 3_000;
const anything = fc.property(fc.array(asked, { maxLength: 12 }), bounded);

test("whatever the requests, an acceptor keeps no number beyond its clock and no token beyond its ballot", () => {
  expect(fc.check(anything, { numRuns })).toMatchObject({ failed: false });
});

test("a token beyond the ballot number is refused, and one equal to it is accepted", () => {
  const acceptor = readyAcceptor();
  const write = { owner: "p.1", number: ballot(0), until: baseMs + 500, duration: 500 };
  for (const token of [ballot(0) + 1, Number.MAX_SAFE_INTEGER]) {
    expect(ask(acceptor, message(Kind.write, { ...write, token }), at(0))?.kind).toBe(Kind.nack);
  }
  expect(ask(acceptor, message(Kind.write, { ...write, token: ballot(0) }), at(0))?.kind).toBe(Kind.ack);
});

test("an acceptor without the bound on tokens is found by the same requests", () => {
  const found = withFaults({ anyTokenAccepted: true }, () => fc.check(anything, { numRuns, seed: 1 }));
  expect(found.failed).toBe(true);
  expect(found.numRuns).toBeLessThan(100);
});
