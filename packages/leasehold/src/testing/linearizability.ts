import { getOrInsert } from "../common/maps.js";

/**
 * Decides whether a concurrent history is linearizable: whether all of its operations could have happened one
 * after another, each at one instant between its call and its return, so that a sequential model gives every
 * recorded answer. Uses the algorithm of Wing and Gong (1993) with Lowe's improvement (2017), which remembers
 * pairs of (operations done, state) that were tried without success.
 */

/** The behaviour of an object when it is used by one caller at a time. */
export interface SequentialModel<State, Input, Output> {
  readonly initial: State;
  /**
   * The possible states after `input` was answered with `output`; none if that answer is impossible. `output`
   * is undefined if the caller never got the answer, so that every answer is possible.
   */
  step(state: State, input: Input, output: Output | undefined): readonly State[];
  /** States with the same key are the same. Default: `JSON.stringify`, with bigints as text. */
  keyOf?(state: State): string;
  /**
   * Operations with different keys are independent and checked separately, which is far faster. Each key has
   * its own state, which begins as `initial`.
   */
  partitionOf?(input: Input): string;
}

/** One operation of a history. Times are on a clock that all callers share, in any unit. */
export interface HistoryOperation<Input, Output> {
  readonly input: Input;
  /** The time of the call. */
  readonly calledAt: number;
  /**
   * The time of the return, not before `calledAt`. Undefined if it never returned; it may then have happened
   * at any later time, or not at all.
   */
  readonly returnedAt?: number | undefined;
  /** The result; ignored if the operation did not return. */
  readonly output?: Output | undefined;
}

/** The result of {@link checkLinearizable}. */
export interface LinearizabilityResult<Input, Output> {
  /** `unknown`: the search reached a limit, so it is open whether the history is linearizable. */
  readonly verdict: "linearizable" | "violated" | "unknown";
  /**
   * If the history is linearizable, an order that explains it; operations without a return may be missing.
   */
  readonly order: readonly HistoryOperation<Input, Output>[];
  /**
   * Otherwise, for the first partition without a complete order: the longest order found, and the operations
   * of which none could come next.
   */
  readonly longest: readonly HistoryOperation<Input, Output>[];
  readonly stuckAt: readonly HistoryOperation<Input, Output>[];
}

/** Options of {@link checkLinearizable}. */
export interface LinearizabilityOptions {
  /**
   * The maximum number of search steps, 1 or more; beyond it the verdict is `unknown`. Default: 10 million,
   * about ten seconds.
   */
  readonly stepsMax?: number | undefined;
}

/** The problem is hard in general; a history that takes more steps should be split into smaller ones. */
const stepsMaxDefault = 10_000_000;

/** The maximum memory for tried states; beyond it the verdict is also `unknown`. */
const rememberedBytesMax = 256 * 2 ** 20;
/** The approximate overhead of each entry in a set of texts. */
const rememberedOverheadBytes = 64;

/**
 * Decides whether a history is linearizable.
 *
 * @throws RangeError if a time is not a number, or an operation returns before it is called.
 * @example
 * ```ts
 * import { checkLinearizable, registerModel } from "leasehold/testing";
 *
 * const history = [
 *   { input: { write: "a" }, calledAt: 0, returnedAt: 10 },
 *   // Stale: "a" was there before.
 *   { input: "read" as const, output: { value: "" }, calledAt: 20, returnedAt: 30 },
 * ];
 * checkLinearizable(registerModel(""), history).verdict; // "violated"
 * ```
 */
export function checkLinearizable<State, Input, Output>(
  model: SequentialModel<State, Input, Output>,
  history: readonly HistoryOperation<Input, Output>[],
  options: LinearizabilityOptions = {},
): LinearizabilityResult<Input, Output> {
  for (const operation of history) checkTimes(operation);
  const stepsMax = options.stepsMax ?? stepsMaxDefault;
  if (!(stepsMax >= 1)) throw new RangeError(`stepsMax must be 1 or more, and is ${stepsMax}`);
  const partitions = new Map<string, HistoryOperation<Input, Output>[]>();
  for (const operation of history) {
    const name = model.partitionOf?.(operation.input) ?? "";
    getOrInsert(partitions, name, () => []).push(operation);
  }
  const budget = { steps: stepsMax, bytes: rememberedBytesMax };
  const orders: Linearized<Input, Output>[][] = [];
  // Small partitions come first, so that a violation there is proved before a large one uses up the budget.
  for (const partition of [...partitions.values()].sort((one, other) => one.length - other.length)) {
    const search = new Search(model, partition, budget);
    const found = search.run();
    if (found === undefined) {
      const { longest, stuckAt } = search;
      return { verdict: search.gaveUp ? "unknown" : "violated", order: [], longest, stuckAt };
    }
    orders.push(found);
  }
  // Each operation is placed at the latest call so far in its partition, so the partitions' orders can be
  // merged.
  const merged = orders.flat().sort((left, right) => left.at - right.at);
  return {
    verdict: "linearizable",
    order: merged.map(({ operation }) => operation),
    longest: [],
    stuckAt: [],
  };
}

function checkTimes({ calledAt, returnedAt }: HistoryOperation<unknown, unknown>): void {
  if (Number.isNaN(calledAt)) throw new RangeError("calledAt must be a number");
  if (returnedAt !== undefined && !(returnedAt >= calledAt))
    throw new RangeError(`an operation that was called at ${calledAt} cannot return at ${returnedAt}`);
}

interface Linearized<Input, Output> {
  readonly operation: HistoryOperation<Input, Output>;
  /** An instant at which it may have happened. */
  readonly at: number;
}

/** A call or a return, in a list from which both can be removed, and restored at their old positions. */
interface Entry {
  readonly operation: number;
  readonly at: number;
  /** A call's return; undefined for returns and for calls that never return. */
  match: Entry | undefined;
  readonly isCall: boolean;
  before: Entry | undefined;
  after: Entry | undefined;
}

/** The operations that may come next in one state, some of which have been tried. */
interface Choice<State> {
  readonly entry: Entry;
  readonly states: readonly State[];
  /** The index of the next state. */
  next: number;
  readonly stateBefore: State;
}

/** The budget shared by all searches of one check. */
interface Budget {
  steps: number;
  bytes: number;
}

class Search<State, Input, Output> {
  readonly #model: SequentialModel<State, Input, Output>;
  readonly #history: readonly HistoryOperation<Input, Output>[];
  readonly #budget: Budget;
  readonly #keyOf: (state: State) => string;
  readonly #head: Entry;
  /** The number of operations that must be in the order but are not yet. */
  #owed: number;
  /** A bit for each operation, in 16-bit words, which become the characters of a text. */
  readonly #done: Uint16Array;
  readonly #tried = new Set<string>();
  readonly #stack: Choice<State>[] = [];
  /** The search ended because the budget was used up. */
  gaveUp = false;
  longest: readonly HistoryOperation<Input, Output>[] = [];
  stuckAt: readonly HistoryOperation<Input, Output>[] = [];

  constructor(
    model: SequentialModel<State, Input, Output>,
    history: readonly HistoryOperation<Input, Output>[],
    budget: Budget,
  ) {
    this.#model = model;
    this.#history = history;
    this.#budget = budget;
    this.#keyOf = model.keyOf?.bind(model) ?? jsonOf;
    this.#head = linkedEntries(history);
    this.#owed = history.filter(({ returnedAt }) => returnedAt !== undefined).length;
    this.#done = new Uint16Array(Math.ceil(history.length / 16));
  }

  /** A complete order, or `undefined`. */
  run(): Linearized<Input, Output>[] | undefined {
    let state = this.#model.initial;
    let entry = this.#head.after;
    while (this.#owed > 0) {
      this.#budget.steps -= 1;
      if (this.#budget.steps < 0 || this.#budget.bytes < 0) {
        this.#noteStuck();
        this.gaveUp = true;
        return undefined;
      }
      if (entry?.isCall === true) {
        const entered = this.#enter(entry, state, 0);
        if (entered === undefined) {
          entry = entry.after;
        } else {
          state = entered.state;
          entry = this.#head.after;
        }
        continue;
      }
      // The next entry is a return, or there is none, so all calls before it have been tried. Undo the last
      // choice.
      this.#noteStuck();
      const back = this.#takeBack();
      if (back === undefined) return undefined;
      state = back.state;
      entry = back.entry;
    }
    return this.#order();
  }

  /** Chooses an operation as the next one if the model allows it and it has not been tried. */
  #enter(entry: Entry, stateBefore: State, from: number): { state: State } | undefined {
    const { input, output, returnedAt } = this.#history[entry.operation]!;
    const states = this.#model.step(stateBefore, input, returnedAt === undefined ? undefined : output);
    this.#flip(entry.operation);
    for (let next = from; next < states.length; next += 1) {
      const state = states[next]!;
      const key = this.#doneKey() + this.#keyOf(state);
      if (this.#tried.has(key)) continue;
      this.#tried.add(key);
      this.#budget.bytes -= 2 * key.length + rememberedOverheadBytes;
      this.#stack.push({ entry, states, next, stateBefore });
      if (entry.match !== undefined) this.#owed -= 1;
      lift(entry);
      return { state };
    }
    this.#flip(entry.operation);
    return undefined;
  }

  /** Undoes the last choice and makes the next one there. */
  #takeBack(): { state: State; entry: Entry | undefined } | undefined {
    const choice = this.#stack.pop();
    if (choice === undefined) return undefined;
    const { entry, next, stateBefore } = choice;
    putBack(entry);
    if (entry.match !== undefined) this.#owed += 1;
    this.#flip(entry.operation);
    const entered = this.#enter(entry, stateBefore, next + 1);
    if (entered !== undefined) return { state: entered.state, entry: this.#head.after };
    return { state: stateBefore, entry: entry.after };
  }

  #flip(operation: number): void {
    this.#done[operation >>> 4]! ^= 1 << (operation & 15);
  }

  /** All keys of one search have the same length, so the suffix needs no separator. */
  #doneKey(): string {
    let key = "";
    for (const word of this.#done) key += String.fromCharCode(word);
    return key;
  }

  #noteStuck(): void {
    const isFirst = this.longest.length === 0 && this.stuckAt.length === 0;
    if (!isFirst && this.#stack.length <= this.longest.length) return;
    this.longest = this.#stack.map(({ entry }) => this.#history[entry.operation]!);
    const stuckAt: HistoryOperation<Input, Output>[] = [];
    for (let entry = this.#head.after; entry?.isCall === true; entry = entry.after)
      stuckAt.push(this.#history[entry.operation]!);
    this.stuckAt = stuckAt;
  }

  #order(): Linearized<Input, Output>[] {
    let at = -Infinity;
    return this.#stack.map(({ entry }) => {
      at = Math.max(at, entry.at);
      return { operation: this.#history[entry.operation]!, at };
    });
  }
}

/** Calls and returns by time. At the same instant calls come first, so that adjacent operations overlap. */
function linkedEntries(history: readonly HistoryOperation<unknown, unknown>[]): Entry {
  const entries: Entry[] = [];
  const links = { before: undefined, after: undefined };
  for (const [operation, { calledAt, returnedAt }] of history.entries()) {
    const call: Entry = { operation, at: calledAt, match: undefined, isCall: true, ...links };
    entries.push(call);
    if (returnedAt === undefined) continue;
    call.match = { operation, at: returnedAt, match: undefined, isCall: false, ...links };
    entries.push(call.match);
  }
  entries.sort((left, right) => left.at - right.at || Number(right.isCall) - Number(left.isCall));
  const head: Entry = { operation: -1, at: -Infinity, match: undefined, isCall: false, ...links };
  let last = head;
  for (const entry of entries) {
    last.after = entry;
    entry.before = last;
    last = entry;
  }
  return head;
}

function lift(call: Entry): void {
  unlink(call);
  if (call.match !== undefined) unlink(call.match);
}

/** In reverse order, so that each entry finds its neighbours as it left them. */
function putBack(call: Entry): void {
  if (call.match !== undefined) relink(call.match);
  relink(call);
}

function unlink(entry: Entry): void {
  entry.before!.after = entry.after;
  if (entry.after !== undefined) entry.after.before = entry.before;
}

function relink(entry: Entry): void {
  entry.before!.after = entry;
  if (entry.after !== undefined) entry.after.before = entry;
}

function jsonOf(state: unknown): string {
  return (
    JSON.stringify(state, (_key, value: unknown) => (typeof value === "bigint" ? `${value}n` : value)) ?? ""
  );
}
