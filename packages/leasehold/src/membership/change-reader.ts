import type { KeepAlive } from "../common/keep-alive.js";
import { PendingReads } from "../lease/manager/pending-reads.js";
import type { Member, MemberChange } from "./types.js";

/**
 * One reader of a group's changes. It remembers the last reported state of each member and which of these may
 * be outdated, so its memory is bounded by the number of members, however slow it is.
 */
export class ChangeReader implements AsyncIterableIterator<MemberChange, undefined> {
  readonly #find: (name: string) => Member | undefined;
  readonly #onEnd: () => void;
  readonly #reported = new Map<string, Member>();
  readonly #marked = new Set<string>();
  readonly #reads: PendingReads<MemberChange>;

  /**
   * @param find a member's present state
   * @param keepAlive keeps the process alive while a caller waits for a change
   */
  constructor(find: (name: string) => Member | undefined, onEnd: () => void, keepAlive?: KeepAlive) {
    this.#find = find;
    this.#onEnd = onEnd;
    this.#reads = new PendingReads(() => this.#take(), keepAlive);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<MemberChange, undefined>> {
    return this.#reads.next();
  }

  async return(): Promise<IteratorResult<MemberChange, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }

  /** The member may differ from its last reported state. */
  mark(name: string): void {
    this.#marked.add(name);
    this.#reads.serve();
  }

  end(error?: unknown): void {
    this.#marked.clear();
    this.#reported.clear();
    this.#onEnd();
    this.#reads.end(error);
  }

  #take(): MemberChange | undefined {
    for (const name of this.#marked) {
      this.#marked.delete(name);
      const [before, now] = [this.#reported.get(name), this.#find(name)];
      if (now === undefined) this.#reported.delete(name);
      else this.#reported.set(name, now);
      const change = changeOf(before, now);
      if (change !== undefined) return change;
    }
    return undefined;
  }
}

function changeOf(before: Member | undefined, now: Member | undefined): MemberChange | undefined {
  if (now === undefined) return before && { type: "left", member: before };
  if (before === undefined) return { type: "joined", member: now };
  if (JSON.stringify(before.data) === JSON.stringify(now.data)) return undefined;
  return { type: "changed", member: now };
}
