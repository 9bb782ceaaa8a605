/**
 * Logarithm and power with the same bits on every engine, as a seed must give the same run on every Node and in a
 * browser: engines round theirs differently. The algorithms and constants are those of fdlibm, as V8 had them up
 * to Node 22, for the arguments that simulators have: positive and normal.
 *
 * Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro, a Sun Microsystems, Inc.
 * business. Permission to use, copy, modify, and distribute this software is freely granted, provided that this
 * notice is preserved.
 */

const cell = new DataView(new ArrayBuffer(8));

function high(x: number): number {
  cell.setFloat64(0, x);
  return cell.getInt32(0);
}

function withHigh(x: number, word: number): number {
  cell.setFloat64(0, x);
  cell.setInt32(0, word);
  return cell.getFloat64(0);
}

/** The first 32 bits: products of two such numbers are exact. */
function head(x: number): number {
  cell.setFloat64(0, x);
  cell.setInt32(4, 0);
  return cell.getFloat64(0);
}

/** Of a polynomial without its constant part, the coefficients from the lowest on. */
function series(x: number, coefficients: readonly number[]): number {
  let sum = 0;
  for (let at = coefficients.length - 1; at >= 0; at -= 1) sum = coefficients[at]! + x * sum;
  return sum;
}

const ln2High = 6.9314718036912381649e-1;
const ln2Low = 1.90821492927058770002e-10;
const oddLog = [
  6.66666666666673513e-1, 2.857142874366239149e-1, 1.818357216161805012e-1, 1.479819860511658591e-1,
];
const evenLog = [3.999999999940941908e-1, 2.222219843214978396e-1, 1.531383769920937332e-1];

/** The natural logarithm of a positive normal number. */
export function log(x: number): number {
  const word = high(x);
  const mantissa = word & 0xfffff;
  const carry = (mantissa + 0x95f64) & 0x100000;
  const exponent = (word >> 20) - 1_023 + (carry >> 20);
  const f = withHigh(x, mantissa | (carry ^ 0x3ff00000)) - 1;
  const whole = exponent * ln2High;
  const rest = exponent * ln2Low;
  if ((0xfffff & (2 + mantissa)) < 3) {
    if (f === 0) return exponent === 0 ? 0 : whole + rest;
    const tail = f * f * (0.5 - (1 / 3) * f);
    return exponent === 0 ? f - tail : whole - (tail - rest - f);
  }
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const tail = z * series(w, oddLog) + w * series(w, evenLog);
  if (((mantissa - 0x6147a) | (0x6b851 - mantissa)) > 0) {
    const half = 0.5 * f * f;
    return exponent === 0 ? f - (half - s * (half + tail)) : whole - (half - (s * (half + tail) + rest) - f);
  }
  return exponent === 0 ? f - s * (f - tail) : whole - (s * (f - tail) - rest - f);
}

const steps = [
  { point: 1, high: 0, low: 0 },
  { point: 1.5, high: 5.84962487220764160156e-1, low: 1.35003920212974897128e-8 },
] as const;
const log2Series = [
  5.99999999999994648725e-1, 4.28571428578550184252e-1, 3.33333329818377432918e-1, 2.72728123808534006489e-1,
  2.30660745775561754067e-1, 2.06975017800338417784e-1,
];
const expSeries = [
  1.66666666666666019037e-1, -2.77777777770155933842e-3, 6.61375632143793436117e-5, -1.6533902205465251539e-6,
  4.13813679705723846039e-8,
];
const inverseLn2 = {
  all: 9.61796693925975554329e-1,
  high: 9.61796700954437255859e-1,
  low: -7.02846165095275826516e-9,
};
const ln2 = {
  all: Math.LN2,
  high: 6.93147182464599609375e-1,
  low: -1.90465429995776804525e-9,
};

/** The base 2 logarithm in two parts, of which the first is a head. */
function log2(x: number): readonly [number, number] {
  const word = high(x);
  const mantissa = word & 0xfffff;
  const isUpper = mantissa >= 0xbb67a;
  const step = steps[mantissa > 0x3988e && !isUpper ? 1 : 0];
  const exponent = (word >> 20) - 1_023 + (isUpper ? 1 : 0);
  const scaled = (mantissa | 0x3ff00000) - (isUpper ? 0x100000 : 0);
  const ax = withHigh(x, scaled);
  const above = ax - step.point;
  const inverse = 1 / (ax + step.point);
  const ss = above * inverse;
  const ssHigh = head(ss);
  const sumHigh = withHigh(0, ((scaled >> 1) | 0x20000000) + 0x80000 + (step.point === 1.5 ? 1 << 18 : 0));
  const sumLow = ax - (sumHigh - step.point);
  const ssLow = inverse * (above - ssHigh * sumHigh - ssHigh * sumLow);
  const square = ss * ss;
  const r = square * square * series(square, log2Series) + ssLow * (ssHigh + ss);
  const squareHigh = ssHigh * ssHigh;
  const tHigh = head(3 + squareHigh + r);
  const tLow = r - (tHigh - 3 - squareHigh);
  const u = ssHigh * tHigh;
  const v = ssLow * tHigh + tLow * ss;
  const pHigh = head(u + v);
  const pLow = v - (pHigh - u);
  const zHigh = inverseLn2.high * pHigh;
  const zLow = inverseLn2.low * pHigh + pLow * inverseLn2.all + step.low;
  const first = head(zHigh + zLow + step.high + exponent);
  return [first, zLow - (first - exponent - step.high - zHigh)];
}

/** `x ** y` of a positive normal number, where the result is one, too. */
export function pow(x: number, y: number): number {
  if (y === 0 || x === 1) return 1;
  if (y === 1) return x;
  if (y === 2) return x * x;
  if (y === 0.5) return Math.sqrt(x);
  const [first, second] = log2(x);
  const yHigh = head(y);
  const low = (y - yHigh) * first + y * second;
  let rest = yHigh * first;
  const word = high(low + rest);
  let exponent = 0;
  if ((word & 0x7fffffff) > 0x3fe00000) {
    const shift = ((word & 0x7fffffff) >> 20) - 0x3ff;
    const rounded = word + (0x100000 >> (shift + 1));
    const places = ((rounded & 0x7fffffff) >> 20) - 0x3ff;
    rest -= withHigh(0, rounded & ~(0xfffff >> places));
    exponent = ((rounded & 0xfffff) | 0x100000) >> (20 - places);
    if (word < 0) exponent = -exponent;
  }
  const t = head(low + rest);
  const u = t * ln2.high;
  const v = (low - (t - rest)) * ln2.all + t * ln2.low;
  const z = u + v;
  const w = v - (z - u);
  const square = z * z;
  const t1 = z - square * series(square, expSeries);
  // Fdlibm subtracts `w + z * w` from the quotient. V8 did so from the divisor, which changes the last bit at times.
  const result = 1 - ((z * t1) / (t1 - 2 - (w + z * w)) - z);
  return withHigh(result, high(result) + (exponent << 20));
}
