import { FenceError } from "./errors.js";

/** The greatest token: resources store tokens as signed 64-bit integers. */
export const tokenMax = 2n ** 63n - 1n;

/**
 * The number of tokens in one generation. On every ground the first two million tenures get smaller tokens.
 */
const generationTokens = 2n ** 53n;

/** @throws FenceError `TOKEN_INVALID` unless it is a bigint from 1 to {@link tokenMax} */
export function checkToken(token: bigint): void {
  // Callers without types also pass numbers, which may have been rounded, and text, which compares wrongly.
  if (typeof token !== "bigint" || token < 1n || token > tokenMax)
    throw new FenceError("TOKEN_INVALID", `${shown(token)} is not a token: a bigint from 1 to 2^63 - 1`);
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : String(value);
}

/**
 * Reads a token from text: a header, `LEASE_TOKEN` or JSON.
 *
 * @throws FenceError `TOKEN_INVALID` unless it is a decimal number from 1 to {@link tokenMax}, without
 *   sign, spaces or leading zeros
 *
 * @example
 * ```ts
 * import { parseToken } from "@leasehold/fence";
 *
 * assert.equal(parseToken("42"), 42n);
 * assert.throws(() => parseToken("-1"), { code: "TOKEN_INVALID" });
 * ```
 */
export function parseToken(text: string): bigint {
  if (typeof text !== "string" || !/^[1-9]\d{0,18}$/.test(text))
    throw new FenceError("TOKEN_INVALID", `${shown(text)} is not a token in decimal`);
  const token = BigInt(text);
  checkToken(token);
  return token;
}

/**
 * Maps a token so that a fence accepts it after its resource has moved to another ground. Each ground counts
 * in its own way (members by time, a core by revisions, stores from 1), so the first token of the new ground
 * may be smaller than the last one of the old ground, and the fence would refuse every new holder. Use the
 * next generation for each move: all of its tokens are greater than those of the previous generation.
 *
 * @param generation 0 for the first ground, at most 1,023
 * @throws FenceError `TOKEN_INVALID` if the generation is out of range or the token is 2^53 or more (only on
 *   stores that cannot compare and set, after some two million tenures)
 *
 * @example
 * ```ts
 * import { tokenInGeneration } from "@leasehold/fence";
 *
 * const onMembers = tokenInGeneration(891_289_600_000_000n, 0);
 * const onCore = tokenInGeneration(17n, 1);
 * assert(onCore > onMembers);
 * ```
 */
export function tokenInGeneration(token: bigint, generation: number): bigint {
  checkToken(token);
  if (token >= generationTokens)
    throw new FenceError("TOKEN_INVALID", `token ${token} has no generation: it is 2^53 or more`);
  if (!Number.isInteger(generation) || generation < 0 || generation > 1_023)
    throw new FenceError("TOKEN_INVALID", `${generation} is not a generation: a number from 0 to 1023`);
  return BigInt(generation) * generationTokens + token;
}
