/**
 * A bounded amount that clients share without a quota: a client that has as much as is free gets no more.
 * Alone that is half of all; of many who want all they can get, each comes to have as much as the others, and
 * as much is free for the next one (Choudhury and Hahne's dynamic thresholds). Nothing is ever taken away
 * again.
 */
export class FairShares<Client> {
  readonly #max: number;
  readonly #used = new Map<Client, number>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False, and nothing is taken: it would be more than is left, or than its share. */
  take(client: Client, amount: number): boolean {
    const own = this.#used.get(client) ?? 0;
    if (own + amount > this.#max - this.#total) return false;
    this.add(client, amount);
    return true;
  }

  /** Takes it, if need be beyond its share. */
  add(client: Client, amount: number): void {
    this.#used.set(client, (this.#used.get(client) ?? 0) + amount);
    this.#total += amount;
  }

  giveBack(client: Client, amount: number): void {
    const left = (this.#used.get(client) ?? 0) - amount;
    if (left > 0) this.#used.set(client, left);
    else this.#used.delete(client);
    this.#total -= amount;
  }

  /** There is some left for it. */
  hasRoomFor(client: Client): boolean {
    return this.#total < this.#max && (this.#used.get(client) ?? 0) <= this.#max - this.#total;
  }
}
