/**
 * A bounded amount that clients share without a quota: a client that already has as much as is free gets no
 * more. A single client gets half of the total; among greedy clients each converges to an equal share, and as
 * much stays free for the next one (Choudhury and Hahne's dynamic thresholds). Nothing is ever revoked.
 */
export class Room<Refusal extends Error = Error> {
  /** The error for a client that gets no more. */
  readonly refusal: (client: string) => Refusal;
  readonly #max: number;
  readonly #usedBy = new Map<string, number>();
  #used = 0;

  constructor(max: number, refusal: (client: string) => Refusal) {
    this.#max = max;
    this.refusal = refusal;
  }

  /** By all clients. */
  get used(): number {
    return this.#used;
  }

  /** False, and nothing is taken, when it would exceed the free amount or the client's share. */
  tryTake(client: string, amount: number): boolean {
    const own = this.#usedBy.get(client) ?? 0;
    if (own + amount > this.#max - this.#used) return false;
    this.overdraw(client, amount);
    return true;
  }

  /** @throws the refusal, and takes nothing */
  take(client: string, amount: number): void {
    if (!this.tryTake(client, amount)) throw this.refusal(client);
  }

  /** Takes it, even beyond the client's share: for what exists in any case. */
  overdraw(client: string, amount: number): void {
    this.#usedBy.set(client, (this.#usedBy.get(client) ?? 0) + amount);
    this.#used += amount;
  }

  release(client: string, amount: number): void {
    const left = (this.#usedBy.get(client) ?? 0) - amount;
    if (left > 0) this.#usedBy.set(client, left);
    else this.#usedBy.delete(client);
    this.#used -= amount;
  }

  /** Whether some is left for the client. */
  hasRoomFor(client: string): boolean {
    return this.#used < this.#max && (this.#usedBy.get(client) ?? 0) <= this.#max - this.#used;
  }
}

/** The share of a room that one use has, for example a request. It changes with the use, and ends with it. */
export class Charge {
  readonly #room: Room;
  readonly #client: string;
  #amount = 0;
  #isOver = false;

  constructor(room: Room, client: string) {
    this.#room = room;
    this.#client = client;
  }

  /** False, and nothing changes, when there is no room for more. */
  tryAdd(more: number): boolean {
    // A use that is over must not be charged again.
    if (this.#isOver || more === 0) return true;
    if (more < 0) this.#room.release(this.#client, -more);
    else if (!this.#room.tryTake(this.#client, more)) return false;
    this.#amount += more;
    return true;
  }

  /** The same for the whole amount. */
  trySet(amount: number): boolean {
    return this.tryAdd(amount - this.#amount);
  }

  /** Adds it, even beyond the client's share. */
  overdraw(more: number): void {
    if (this.#isOver) return;
    this.#room.overdraw(this.#client, more);
    this.#amount += more;
  }

  /**
   * Charges for a part of the use. The returned function sets the part's size, and throws the room's refusal,
   * with the size as before, if there is no room for more.
   */
  part(): (amount: number) => void {
    let charged = 0;
    return (amount) => {
      if (!this.tryAdd(amount - charged)) throw this.#room.refusal(this.#client);
      charged = amount;
    };
  }

  /** Releases all of it. Idempotent. */
  end(): void {
    if (this.#amount > 0) this.#room.release(this.#client, this.#amount);
    this.#amount = 0;
    this.#isOver = true;
  }
}
