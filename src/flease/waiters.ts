import { notListed } from "./message.js";

/** Waiters that an acceptor remembers of one resource. Those beyond look again by themselves, when the lease is over. */
const waitersPerResourceMax = 64;

/** Waiters that an acceptor remembers in all: some megabytes. */
const waitersMax = 100_000;

/**
 * Who waits for which resource, first come, first told. It lies beside the protocol: an acceptor that forgets it, or a
 * hint that gets lost, costs a waiter time and nobody safety.
 */
export class Waiters {
  readonly #lists = new Map<string, number[]>();
  #total = 0;
  #sweep: Iterator<[string, number[]]> | undefined;

  get size(): number {
    return this.#total;
  }

  /** Puts a peer on the list, if it is not on it. Returns how many are before it, or `notListed`. */
  add(resource: string, peer: number): number {
    let list = this.#lists.get(resource);
    const position = list?.indexOf(peer) ?? -1;
    if (position !== -1) return position;
    if (this.#total >= waitersMax || (list !== undefined && list.length >= waitersPerResourceMax))
      return notListed;
    if (list === undefined) {
      list = [];
      this.#lists.set(resource, list);
    }
    this.#total += 1;
    return list.push(peer) - 1;
  }

  /** Takes the first off the list. */
  next(resource: string): number | undefined {
    const first = this.#lists.get(resource)?.[0];
    if (first !== undefined) this.remove(resource, first);
    return first;
  }

  /** The peer has what it waited for, or does not wait any more. */
  remove(resource: string, peer: number): void {
    if (this.#total === 0) return;
    const list = this.#lists.get(resource);
    const position = list?.indexOf(peer) ?? -1;
    if (list === undefined || position === -1) return;
    list.splice(position, 1);
    this.#total -= 1;
    if (list.length === 0) this.#lists.delete(resource);
  }

  /** Drops the lists of resources that are not wanted any more, looking at no more than `limit` lists in one call. */
  discard(isWanted: (resource: string) => boolean, limit: number): void {
    for (let looked = 0; looked < limit; looked += 1) {
      this.#sweep ??= this.#lists.entries();
      const next = this.#sweep.next();
      if (next.done === true) {
        this.#sweep = undefined;
        return;
      }
      const [resource, list] = next.value;
      if (isWanted(resource)) continue;
      this.#total -= list.length;
      this.#lists.delete(resource);
    }
  }
}
