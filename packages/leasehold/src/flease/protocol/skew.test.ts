import fc from "fast-check";
import { expect, test } from "vitest";
import { at, baseMs } from "../../../../../test/support/flease-bench.js";
import { SkewWatch } from "./skew.js";

/** Section 3.10: what a peer's bounds can't be while all wall clocks are within ε = 10. */

const watch = () => new SkewWatch(10, 2);
const now = at(1_000, { lo: 990, hi: 1_000 });
const ms = (relative: number) => baseMs + relative;

test("a peer's lower bound is at most 2ε above the own upper one", () => {
  expect(watch().isPossible(ms(1_020), ms(1_030), 0, now)).toBe(true);
  expect(watch().isPossible(ms(1_021), ms(1_030), 0, now)).toBe(false);
});

test("a reply's upper bound is at most 2ε below the own lower bound when the request left", () => {
  expect(watch().isPossible(ms(700), ms(930), ms(950), now)).toBe(true);
  expect(watch().isPossible(ms(700), ms(929), ms(950), now)).toBe(false);
});

test("a batch that answers nothing is held against the present alone", () => {
  expect(watch().isPossible(ms(0), ms(10), 0, now)).toBe(true);
});

test("one contradicting member is not counted; a majority of them means that we are wrong", () => {
  const skew = watch();
  expect(skew.observe(0, ms(5_000), ms(5_000), 0, now)).toBe(false);
  expect([skew.contradicts(0), skew.contradicts(1), skew.weAreFaulty]).toEqual([true, false, false]);
  expect(skew.observe(2, ms(5_000), ms(5_000), 0, now)).toBe(false);
  expect(skew.weAreFaulty).toBe(true);
});

test("the last word counts: a sane batch clears a member, and one that is gone counts no more", () => {
  const skew = watch();
  for (const member of [0, 1, 2]) skew.observe(member, ms(5_000), ms(5_000), 0, now);
  expect(skew.observe(0, ms(1_000), ms(1_000), ms(990), now)).toBe(true);
  expect([skew.contradicts(0), skew.weAreFaulty]).toEqual([false, true]);
  skew.forget(1);
  expect([skew.contradicts(1), skew.weAreFaulty, skew.skew(1)]).toEqual([false, false, undefined]);
});

test("the same member, however often, is one voice", () => {
  const skew = watch();
  for (let times = 0; times < 5; times += 1) skew.observe(1, ms(5_000), ms(5_000), 0, now);
  expect(skew.weAreFaulty).toBe(false);
});

test("a member's clock is measured between what its batch and the one that it answers allow", () => {
  const skew = watch();
  expect(skew.skew(2)).toBeUndefined();
  skew.measure(2, ms(995), ms(996), 8, now);
  // From 995 - 1000, if it was read just now, to 996 - 1000 + 8, if it was read 8 ms ago.
  expect(skew.skew(2)).toEqual({ skewMs: -0.5, errorMs: 4.5 });
  expect(skew.skew(0)).toBeUndefined();
});

test("the batch counts that waited least, for a while, and none of a member that is gone", () => {
  const skew = watch();
  const after = (later: number) => at(1_000 + later);
  skew.measure(2, ms(1_000), ms(1_000), 2, now);
  skew.measure(2, ms(1_010), ms(1_010), 160, after(90));
  expect(skew.skew(2)).toEqual({ skewMs: 1, errorMs: 1 });
  skew.measure(2, ms(17_000), ms(17_000), 160, after(16_000));
  expect(skew.skew(2)!.errorMs).toBe(1);
  skew.measure(2, ms(33_000), ms(33_000), 160, after(32_000));
  expect(skew.skew(2)!.errorMs).toBe(80);
  skew.forget(2);
  expect(skew.skew(2)).toBeUndefined();
});

test("clocks that are one clock are never apart for certain, and those that are, by what they are", () => {
  const legs = fc.nat({ max: 500 });
  const property = fc.property(
    fc.integer({ min: -100, max: 100 }),
    legs,
    legs,
    legs,
    (apart, there, held, back) => {
      const skew = watch();
      const arrived = 1_000 + there + held + back;
      const peer = ms(1_000 + there + held + apart);
      skew.measure(1, peer, peer, there + back, at(arrived));
      const { skewMs, errorMs } = skew.skew(1)!;
      expect(Math.abs(skewMs - apart)).toBeLessThanOrEqual(errorMs);
    },
  );
  fc.assert(property);
});
