import { expect, test } from "vitest";
import { benchSettings } from "../../../../../test/support/flease-bench.js";
import { obstacleTo } from "./obstacles.js";
import type { Standing } from "./obstacles.js";
import { firstView } from "./view.js";

/** The obstacles that must clear before a change of the members begins (section 3.14). */

const view = firstView(benchSettings({ members: ["a", "b", "c"] }));
const votes: Standing = { stamp: view.stamp, votes: true, waitMs: 0, knowsComing: true };
const abcd = { members: ["a", "b", "c", "d"], cellSize: 4 };
const acd = { members: ["a", "c", "d"], cellSize: 3 };

function why(next: { members: string[]; cellSize: number }, standings: Record<string, Partial<Standing>>) {
  const given = Object.entries(standings).map(([id, more]): [string, Standing] => [
    id,
    { ...votes, ...more },
  ]);
  const obstacle = obstacleTo(view, next, new Map(given));
  return obstacle && `${obstacle.code}: ${obstacle.text}`;
}

test("a new member must answer, be in the present view, be past its recovery wait and be confirmed", () => {
  const rest = { a: {}, b: {}, c: {} };
  expect(why(abcd, rest)).toBe("UNREACHABLE: d is not connected: start it");
  expect(why(abcd, { ...rest, d: { stamp: 0 } })).toBe("TIMEOUT: d has not learnt the present view");
  expect(why(abcd, { ...rest, d: { votes: false, waitMs: 1_001 } })).toBe(
    "TIMEOUT: d waits out its recovery, 2 s",
  );
  expect(why(abcd, { ...rest, d: { votes: false } })).toBe("TIMEOUT: d is not connected with enough members");
  expect(why(abcd, { ...rest, d: {} })).toBeUndefined();
});

test("a majority before the change and one after it must be able to vote, including the new member", () => {
  expect(why(abcd, { a: {}, b: {}, d: {} })).toBeUndefined();
  expect(why(acd, { a: {}, b: {}, d: {} })).toBeUndefined();
  expect(why(abcd, { a: {}, b: { knowsComing: false }, d: {} })).toBe(
    "NO_QUORUM: 1 of the 3 present members can give their votes, which is no majority: b is not connected with d, c is not connected",
  );
  expect(why({ members: ["a", "c"], cellSize: 2 }, { a: {}, b: {} })).toBe(
    "NO_QUORUM: 1 of the 2 members after the change can give their votes, which is no majority: c is not connected",
  );
  const late = { a: {}, b: { votes: false, waitMs: 5_000 }, c: { stamp: view.stamp + 1 }, d: {} };
  expect(why(acd, late)).toContain("b waits out its recovery, 5 s, c is in another view");
  expect(why({ members: ["a", "b"], cellSize: 2 }, { a: {}, b: { votes: false } })).toContain(
    "b has no vote",
  );
});
