import { LeaseholdError } from "leasehold/common";

/** The blocks that an operation touches. Operations without a common block run concurrently. */
export interface Scope {
  /** The first and the last block. */
  readonly from: number;
  readonly to: number;
  readonly changes: boolean;
}

export const wholeFile: Scope = { from: 0, to: Infinity, changes: true };

/** The most operations that may wait on one file. */
const waitingMax = 1024;

interface Turn {
  readonly scope: Scope;
  isRunning: boolean;
  readonly begin: () => void;
}

/**
 * Orders the operations on one file: first come, first served, except that operations without a common block
 * run concurrently. A read that begins after a change of the same block either sees the change or isn't
 * served.
 */
export class Turns {
  readonly #turns = new Set<Turn>();

  get isIdle(): boolean {
    return this.#turns.size === 0;
  }

  /** @throws LeaseholdError `OVERLOADED` when too many operations wait. */
  async run<T>(scope: Scope, operation: () => Promise<T>): Promise<T> {
    if (this.#turns.size >= waitingMax)
      throw new LeaseholdError("OVERLOADED", "too many operations wait for one file");
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const turn: Turn = { scope, isRunning: false, begin };
    this.#turns.add(turn);
    this.#startThoseThatMay();
    await begun;
    try {
      return await operation();
    } finally {
      this.#turns.delete(turn);
      this.#startThoseThatMay();
    }
  }

  #startThoseThatMay(): void {
    const before: Turn[] = [];
    for (const turn of this.#turns) {
      if (!turn.isRunning && !before.some((other) => collide(turn.scope, other.scope))) {
        turn.isRunning = true;
        turn.begin();
      }
      before.push(turn);
    }
  }
}

function collide(one: Scope, other: Scope): boolean {
  return (one.changes || other.changes) && one.from <= other.to && other.from <= one.to;
}
