import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ballot, message } from "../../../../test/support/flease-bench.js";
import { Admission } from "./admission.js";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";
import { Kind } from "./protocol/message.js";

const lateMs = 1_000;
const LOOKS = 10;

/**
 * The share of each sender's requests that an always late member admits, given each sender's requests between
 * two checks.
 */
function admittedParts(demands: readonly number[]): number[] {
  const admission = new Admission(lateMs / 2);
  const admitted = demands.map(() => 0);
  let number = 0;
  for (let look = 0; look < LOOKS; look += 1) {
    admission.look(lateMs);
    const left = [...demands];
    // The greater its demand, the more requests a sender makes in each round, and it goes first.
    while (left.some((count) => count > 0)) {
      for (const [from, demand] of demands.entries()) {
        const turn = Math.min(left[from]!, Math.ceil((demand * demands.length) / 100));
        left[from]! -= turn;
        for (let each = 0; each < turn; each += 1) {
          const request = message(Kind.acquire, { number: ballot(0) + 7 * (number += 1) });
          if (admission.admits(from, request)) admitted[from]! += 1;
        }
      }
    }
  }
  return admitted.map((count, from) => count / (LOOKS * demands[from]!));
}

/** A flooding sender and a light one. */
const flooded = fc.property(
  fc.integer({ min: 1_000, max: 4_000 }),
  fc.integer({ min: 1, max: 30 }),
  (flood, little) => {
    const [ofFlood, ofLittle] = admittedParts([flood, little]);
    return ofFlood! < 0.25 && ofLittle! > 0.8;
  },
);

test("a late member refuses a flooding sender, and not a light one", () => {
  expect(fc.check(flooded, { numRuns: 10 })).toMatchObject({ failed: false });
});

test("the same requests break the bound when the check is planted out", () => {
  const planted: Partial<Faults> = { lightAreTurnedAway: true };
  expect(withFaults(planted, () => fc.check(flooded, { numRuns: 10 })).failed).toBe(true);
});

test("clients with equal loads are refused equally when their total is too much", () => {
  for (const senders of [1, 2, 100]) {
    const parts = admittedParts(Array.from({ length: senders }, () => 2_000 / senders));
    expect(parts.reduce((sum, part) => sum + part, 0) / senders).toBeLessThan(0.25);
  }
});
