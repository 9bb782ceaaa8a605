import fc from "fast-check";
import { expect, test } from "vitest";
import { at, baseMs } from "../../../../../test/support/flease-bench.js";
import { SkewWatch } from "./skew.js";

/** Section 3.10: bounds that a peer can't have while all wall clocks are within ε = 10. */

const watch = () => new SkewWatch(10, 2);
const now = at(1_000, { lo: 990, hi: 1_000 });
const ms = (relative: number) => baseMs + relative;

test("a peer's lower bound is at most 2ε above one's own upper bound", () => {
  expect(watch().isPossible(ms(1_020), ms(1_030), 0, now)).toBe(true);
  expect(watch().isPossible(ms(1_021), ms(1_030), 0, now)).toBe(false);
});

test("a reply's upper bound is at most 2ε below one's own lower bound when the request left", () => {
  expect(watch().isPossible(ms(700), ms(930), ms(950), now)).toBe(true);
  expect(watch().isPossible(ms(700), ms(929), ms(950), now)).toBe(false);
});

test("a batch that answers nothing is checked against the present only", () => {
  expect(watch().isPossible(ms(0), ms(10), 0, now)).toBe(true);
});

test("one contradicting member is not counted; a majority of them means that we are wrong", () => {
  const skew = watch();
  expect(skew.observe(0, ms(5_000), ms(5_000), 0, now)).toBe(false);
  expect([skew.contradicts(0), skew.contradicts(1), skew.weAreFaulty]).toEqual([true, false, false]);
  expect(skew.observe(2, ms(5_000), ms(5_000), 0, now)).toBe(false);
  expect(skew.weAreFaulty).toBe(true);
});

test("the last batch counts: a sane one clears a member, and a departed member no longer counts", () => {
  const skew = watch();
  for (const member of [0, 1, 2]) skew.observe(member, ms(5_000), ms(5_000), 0, now);
  expect(skew.observe(0, ms(1_000), ms(1_000), ms(990), now)).toBe(true);
  expect([skew.contradicts(0), skew.weAreFaulty]).toEqual([false, true]);
  skew.forget(1);
  expect([skew.contradicts(1), skew.weAreFaulty, skew.skew(1)]).toEqual([false, false, undefined]);
});

test("a member that contradicts repeatedly counts once", () => {
  const skew = watch();
  for (let times = 0; times < 5; times += 1) skew.observe(1, ms(5_000), ms(5_000), 0, now);
  expect(skew.weAreFaulty).toBe(false);
});

test("a member's clock is measured within the bounds set by its batch and the one it answers", () => {
  const skew = watch();
  expect(skew.skew(2)).toBeUndefined();
  skew.measure(2, ms(995), ms(996), 8, now);
  // From 995 - 1000, if it was read just now, to 996 - 1000 + 8, if it was read 8 ms ago.
  expect(skew.skew(2)).toEqual({ skewMs: -0.5, errorMs: 4.5 });
  expect(skew.skew(0)).toBeUndefined();
});

test("the batch that waited least counts for a while, and none from a departed member", () => {
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

test("the true difference of two clocks is within the measured bounds, whatever the delays", () => {
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
