import { type ErrorCode, LeaseholdError } from "leasehold/common";
import { pathBytesMax } from "../names/snapshots.js";
import type { Quota } from "../names/types.js";
import { bytesPerCallMax } from "./messages.js";

export function isLeaseholdError(error: unknown, ...codes: readonly ErrorCode[]): error is LeaseholdError {
  return error instanceof LeaseholdError && codes.includes(error.code);
}

/** The primary's tenure ended before the operation began: the next primary may carry it out. */
export class TenureOver extends Error {}

/** None of the copies asked has the block in this version, not even damaged. */
export class NowhereError extends LeaseholdError {}

export const notFound = (path: string): LeaseholdError =>
  new LeaseholdError("FILE_NOT_FOUND", `there is no file ${JSON.stringify(path)}`);

/** @throws LeaseholdError `INVALID_PATH`. */
export function checkPath(path: string): void {
  const isWrong =
    typeof path !== "string" ||
    path.split("/").some((segment) => segment === "" || segment === "." || segment === "..") ||
    /[\p{Cc}\p{Cs}]/u.test(path) ||
    new TextEncoder().encode(path).length > pathBytesMax;
  if (isWrong) throw new LeaseholdError("INVALID_PATH", `${JSON.stringify(path)} is not a path of a file`);
}

/** @throws LeaseholdError `INVALID_RANGE`. */
export function checkRange(offset: number, length: number): void {
  const isRight =
    Number.isSafeInteger(offset) &&
    Number.isSafeInteger(length) &&
    offset >= 0 &&
    length >= 0 &&
    length <= bytesPerCallMax &&
    Number.isSafeInteger(offset + length);
  if (!isRight)
    throw new LeaseholdError(
      "INVALID_RANGE",
      `${length} bytes at ${offset}: offsets are 0 to 2^53 - 1, and a call has at most ${bytesPerCallMax} bytes`,
    );
}

/** The latest time that a `Date` can represent, ms since 1970. */
const timeMsMax = 8.64e15;

/** @throws LeaseholdError `INVALID_RANGE`. */
export function checkTime(ms: number | undefined): void {
  if (ms !== undefined && !(Number.isInteger(ms) && Math.abs(ms) <= timeMsMax))
    throw new LeaseholdError("INVALID_RANGE", `${ms} is not a time of modification`);
}

/** @throws LeaseholdError `INVALID_RANGE`. */
export function checkQuota(quota: Quota): void {
  for (const most of [quota.bytes, quota.files])
    if (most !== null && !(Number.isSafeInteger(most) && most >= 0))
      throw new LeaseholdError("INVALID_RANGE", `${most} is not a quota: it is a number from 0 to 2^53 - 1`);
}
