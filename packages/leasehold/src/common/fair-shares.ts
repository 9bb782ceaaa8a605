/**
 * A bounded amount that clients share without a quota: a client that already has as much as is free gets no
 * more. A single client gets half of the total; among greedy clients each converges to an equal share, and as
 * much stays free for the next one (Choudhury and Hahne's dynamic thresholds). Nothing is ever revoked.
 */
export class FairShares<Client> {
  readonly #max: number;
  readonly #used = new Map<Client, number>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False, and nothing is taken, when it would exceed the free amount or the client's share. */
  take(client: Client, amount: number): boolean {
    const own = this.#used.get(client) ?? 0;
    if (own + amount > this.#max - this.#total) return false;
    this.add(client, amount);
    return true;
  }

  /** Takes it, even beyond the client's share. */
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

  /** Whether some is left for the client. */
  hasRoomFor(client: Client): boolean {
    return this.#total < this.#max && (this.#used.get(client) ?? 0) <= this.#max - this.#total;
  }
}
