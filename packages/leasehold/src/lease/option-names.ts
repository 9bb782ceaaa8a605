import { LeaseholdError } from "./errors.js";
import type {
  AcquireAllOptions,
  AcquireOptions,
  LeaderOptions,
  LeadOptions,
  ListOptions,
  QueryOptions,
  TenureOptions,
  TryAcquireOptions,
  WatchOptions,
} from "./types.js";

/** The names of a type's options: the compiler checks that they are complete. */
export type OptionNames<Options> = Readonly<Record<keyof Required<Options>, true>>;

const tenure: OptionNames<TenureOptions> = {
  ttl: true,
  signal: true,
  autoRenew: true,
  maxHold: true,
  data: true,
};
const acquireAll: OptionNames<AcquireAllOptions> = { ...tenure, wait: true };
const tryAcquire: OptionNames<TryAcquireOptions> = { ...tenure, limit: true, mode: true };
const acquire: OptionNames<AcquireOptions> = { ...acquireAll, ...tryAcquire, fair: true };
const lead: OptionNames<LeadOptions> = { ttl: true, signal: true, data: true, limit: true };
const query: OptionNames<QueryOptions> = { timeout: true, signal: true };
const list: OptionNames<ListOptions> = { ...query, onIncomplete: true };
const leader: OptionNames<LeaderOptions> = { signal: true };
const watch: OptionNames<WatchOptions> = { ...leader, exact: true };

/** The options of each call of the waist. */
const optionsOfCalls = {
  acquire,
  acquireAll,
  using: acquire,
  tryAcquire,
  attach: tenure,
  lead,
  holder: query,
  list,
  watch,
  leader,
  explain: query,
  requestRelease: query,
  handOver: query,
  break: query,
} as const;

export type CallWithOptions = keyof typeof optionsOfCalls;

/**
 * Refuses options that the call doesn't have, and a `signal` that is not an `AbortSignal`.
 *
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function checkOptions(call: CallWithOptions, options: LeaderOptions): void {
  checkOptionNames(call, options, optionsOfCalls[call]);
  const { signal } = options;
  if (signal === undefined || typeof signal?.throwIfAborted === "function") return;
  const hint = "pass the signal of an AbortController";
  throw new LeaseholdError("INVALID_CONFIG", `the signal of ${call} is not an AbortSignal; ${hint}`);
}

/**
 * Refuses unknown options, which would silently have no effect. TypeScript does this too; the check is for
 * JavaScript. It allocates nothing unless it throws.
 *
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function checkOptionNames(call: string, options: object, names: Readonly<Record<string, true>>): void {
  if (typeof options !== "object" || options === null)
    throw new LeaseholdError("INVALID_CONFIG", `the options of ${call} must be an object`);
  for (const name in options)
    if (!Object.hasOwn(names, name) && isGiven(options, name))
      throw unknownOption(call, name, Object.keys(names));
}

/** Ignores properties added to `Object.prototype`, and options that are `undefined`. */
function isGiven(options: object, name: string): boolean {
  if (name in Object.prototype && !Object.hasOwn(options, name)) return false;
  return (options as Readonly<Record<string, unknown>>)[name] !== undefined;
}

/** The maximum number of characters of a rejected name that an error message quotes. */
const quotedCharactersMax = 40;

function unknownOption(call: string, name: string, names: readonly string[]): LeaseholdError {
  const shown = name.slice(0, quotedCharactersMax);
  const near = nearest(shown, names);
  const instead = near === undefined ? `it takes ${names.toSorted().join(", ")}` : `did you mean ${near}?`;
  return new LeaseholdError("INVALID_CONFIG", `${call} has no option ${JSON.stringify(shown)}; ${instead}`);
}

/**
 * The fraction of letters in which a suggestion may differ. Two swapped letters count as two, which in
 * "label" is two of five.
 */
const wrongLettersMax = 0.4;

/** The most similar name, if it is close enough. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Infinity;
  for (const each of names) {
    const distance = distanceOf(name.toLowerCase(), each.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [each, distance];
  }
  return best !== undefined && bestDistance <= wrongLettersMax * Math.max(name.length, best.length)
    ? best
    : undefined;
}

/**
 * The number of letters to insert, delete or replace to turn one name into the other (Levenshtein distance).
 */
function distanceOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at];
    for (let to = 1; to <= other.length; to += 1) {
      const replaced = row[to - 1]! + (one[at - 1] === other[to - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[to]! + 1, next[to - 1]! + 1));
    }
    row = next;
  }
  return row[other.length]!;
}
