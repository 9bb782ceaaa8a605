import type { Nanoseconds } from "./format.js";

/** For sorting. */
export function compare(one: bigint, other: bigint): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

export function later(one: Nanoseconds, other: Nanoseconds): Nanoseconds {
  return one > other ? one : other;
}

export function toNs(ms: number): Nanoseconds {
  return BigInt(Math.round(ms * 1e6));
}

export function apartMs(from: Nanoseconds, to: Nanoseconds): number {
  return Number(to - from) / 1e6;
}
