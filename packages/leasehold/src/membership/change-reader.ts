import type { KeepAlive } from "../common/keep-alive.js";
import { Readers } from "../lease/manager/readers.js";
import type { Member, MemberChange } from "./types.js";

/**
 * One reader of a group's changes. It remembers what it has been told of each member and which of them may
 * differ, so that however slow it is, it needs no more room than there are members.
 */
export class ChangeReader implements AsyncIterableIterator<MemberChange, undefined> {
  readonly #find: (name: string) => Member | undefined;
  readonly #onEnd: () => void;
  readonly #told = new Map<string, Member>();
  readonly #marked = new Set<string>();
  readonly #readers: Readers<MemberChange>;

  /**
   * @param find a member as it is now
   * @param keepAlive is used as long as somebody waits for a change
   */
  constructor(find: (name: string) => Member | undefined, onEnd: () => void, keepAlive?: KeepAlive) {
    this.#find = find;
    this.#onEnd = onEnd;
    this.#readers = new Readers(() => this.#take(), keepAlive);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<MemberChange, undefined>> {
    return this.#readers.next();
  }

  async return(): Promise<IteratorResult<MemberChange, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }

  /** The member may be another than was told. */
  mark(name: string): void {
    this.#marked.add(name);
    this.#readers.serve();
  }

  end(error?: unknown): void {
    this.#marked.clear();
    this.#told.clear();
    this.#onEnd();
    this.#readers.end(error);
  }

  #take(): MemberChange | undefined {
    for (const name of this.#marked) {
      this.#marked.delete(name);
      const [before, now] = [this.#told.get(name), this.#find(name)];
      if (now === undefined) this.#told.delete(name);
      else this.#told.set(name, now);
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
