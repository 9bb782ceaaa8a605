import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { log, pow } from "./portable-math.js";
import { SimRandom } from "./random.js";

test("logarithm and power have the same bits on every engine, and are right to the last two", () => {
  const random = new SimRandom(1);
  const hash = createHash("sha256");
  const bits = new DataView(new ArrayBuffer(8));
  const add = (value: number): void => {
    bits.setFloat64(0, value);
    hash.update(new Uint8Array(bits.buffer));
  };
  const isClose = (one: number, other: number) =>
    Math.abs(one - other) <= 4 * Number.EPSILON * Math.abs(other);
  const wrong: number[][] = [];
  for (let round = 0; round < 20_000; round += 1) {
    const share = random.next();
    const base = 1 + random.next() * 2 ** random.below(20);
    const [logarithm, power] = [log(1 - share), pow(base, share)];
    if (!isClose(logarithm, Math.log(1 - share)) || !isClose(power, base ** share))
      wrong.push([share, base, logarithm, power]);
    add(logarithm);
    add(power);
  }
  expect(wrong).toEqual([]);
  expect(hash.digest("hex").slice(0, 16)).toBe("59fe3f0cd1deea69");
});

test("at the ends they are exact", () => {
  expect([log(1), log(2), pow(7, 0), pow(7, 1), pow(7, 2), pow(9, 0.5), pow(1, 0.3)]).toEqual([
    0,
    Math.LN2,
    1,
    7,
    49,
    3,
    1,
  ]);
});
