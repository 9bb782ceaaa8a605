import { getOrInsert } from "../common/maps.js";
import type { SequentialModel } from "./linearizability.js";

/** The input of a register: `"read"` returns its value, `{ write }` returns nothing. */
export type RegisterInput<Value> = "read" | { readonly write: Value };

/**
 * The output of a read: the value, or its absence. It is an object so that "no value" and "no answer yet"
 * differ.
 */
export interface RegisterOutput<Value> {
  readonly value: Value | undefined;
}

/**
 * A register: a read returns the last written value, or `initial` before the first write. Values are compared
 * with `===`, but NaN equals itself.
 *
 * @example
 * ```ts
 * import { checkLinearizable, registerModel } from "leasehold/testing";
 *
 * checkLinearizable(registerModel(0), [
 *   { input: { write: 1 }, calledAt: 0, returnedAt: 2 },
 *   { input: "read", output: { value: 1 }, calledAt: 1, returnedAt: 3 },
 * ]).verdict; // "linearizable"
 * ```
 */
export function registerModel<Value>(
  initial?: Value,
): SequentialModel<Value | undefined, RegisterInput<Value>, RegisterOutput<Value>> {
  return {
    initial,
    step(state, input, output) {
      if (input !== "read") return [input.write];
      return output === undefined || same(output.value, state) ? [state] : [];
    },
    keyOf: keysByIdentity(),
  };
}

/**
 * The input of a register, or `{ compare, swap }`, which returns whether the value was `compare` and has been
 * replaced by `swap`.
 */
export type CasInput<Value> = RegisterInput<Value> | { readonly compare: Value; readonly swap: Value };

/** The output: `value` of a read, `swapped` of a compare-and-set. */
export interface CasOutput<Value> {
  readonly value?: Value | undefined;
  readonly swapped?: boolean;
}

/**
 * A register with compare-and-set.
 *
 * @example
 * ```ts
 * import { checkLinearizable, casRegisterModel } from "leasehold/testing";
 *
 * checkLinearizable(casRegisterModel(0), [
 *   { input: { compare: 0, swap: 1 }, output: { swapped: true }, calledAt: 0, returnedAt: 2 },
 *   { input: { compare: 0, swap: 2 }, output: { swapped: true }, calledAt: 1, returnedAt: 3 },
 * ]).verdict; // "violated": only one of them can have found 0
 * ```
 */
export function casRegisterModel<Value>(
  initial?: Value,
): SequentialModel<Value | undefined, CasInput<Value>, CasOutput<Value>> {
  return {
    initial,
    step(state, input, output) {
      if (input === "read") return output === undefined || same(output.value, state) ? [state] : [];
      if ("write" in input) return [input.write];
      const swaps = same(state, input.compare);
      if (output !== undefined && output.swapped !== swaps) return [];
      return [swaps ? input.swap : state];
    },
    keyOf: keysByIdentity(),
  };
}

/** A guarded operation at a resource that a lease protects. */
export interface TokenGuardInput {
  /** The resource. Each is checked separately. */
  readonly resource: string;
  readonly token: bigint;
}

/** Whether the resource accepted the token. */
export interface TokenGuardOutput {
  readonly accepted: boolean;
}

/**
 * The guard for fencing tokens: it accepts a token if it is not smaller than the greatest token accepted so
 * far, and refuses all others.
 *
 * @example
 * ```ts
 * import { checkLinearizable, tokenGuardModel } from "leasehold/testing";
 *
 * checkLinearizable(tokenGuardModel(), [
 *   { input: { resource: "r", token: 2n }, output: { accepted: true }, calledAt: 0, returnedAt: 1 },
 *   { input: { resource: "r", token: 1n }, output: { accepted: true }, calledAt: 2, returnedAt: 3 },
 * ]).verdict; // "violated": the older holder got through
 * ```
 */
export function tokenGuardModel(): SequentialModel<bigint, TokenGuardInput, TokenGuardOutput> {
  return {
    initial: -1n,
    step(greatest, { token }, output) {
      const accepted = token >= greatest;
      if (output !== undefined && output.accepted !== accepted) return [];
      return [accepted ? token : greatest];
    },
    keyOf: String,
    partitionOf: ({ resource }) => resource,
  };
}

function same(left: unknown, right: unknown): boolean {
  return left === right || (Number.isNaN(left) && Number.isNaN(right));
}

/** Keys that are equal if and only if the values are the same. */
function keysByIdentity(): (value: unknown) => string {
  const numbers = new Map<unknown, string>();
  return (value) => getOrInsert(numbers, value, () => String(numbers.size));
}
