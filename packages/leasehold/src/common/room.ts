/**
 * A bounded amount that clients share without quotas: a client that already has as much as is free gets no
 * more. A single client gets up to half of the total. Greedy clients converge to equal shares, and the same
 * amount stays free for the next client (Choudhury and Hahne's dynamic thresholds). Nothing is ever revoked.
 */
export class Room<Refusal extends Error = Error> {
  /** Makes the error for a client that gets no more. */
  readonly refusal: (client: string) => Refusal;
  readonly #max: number;
  readonly #usedBy = new Map<string, number>();
  #used = 0;

  constructor(max: number, refusal: (client: string) => Refusal) {
    this.#max = max;
    this.refusal = refusal;
  }

  /** The amount that all clients have together. */
  get used(): number {
    return this.#used;
  }

  /**
   * Takes the amount. If that would exceed the free amount or the client's share, takes nothing and returns
   * false.
   */
  tryTake(client: string, amount: number): boolean {
    const own = this.#usedBy.get(client) ?? 0;
    if (own + amount > this.#max - this.#used) return false;
    this.overdraw(client, amount);
    return true;
  }

  /** @throws the refusal, without taking anything */
  take(client: string, amount: number): void {
    if (!this.tryTake(client, amount)) throw this.refusal(client);
  }

  /** Takes the amount even beyond the client's share: for what is already in use. */
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

  /** Whether the client could get any more. */
  hasRoomFor(client: string): boolean {
    return this.#used < this.#max && (this.#usedBy.get(client) ?? 0) <= this.#max - this.#used;
  }
}

/**
 * What one use, for example a request, takes of a room. It grows and shrinks with the use, and ends with it.
 */
export class Charge {
  readonly #room: Room;
  readonly #client: string;
  #amount = 0;
  #isOver = false;

  constructor(room: Room, client: string) {
    this.#room = room;
    this.#client = client;
  }

  /** Changes the size by `more`. If there is no room for that, changes nothing and returns false. */
  tryAdd(more: number): boolean {
    // A use that has ended must not be charged again.
    if (this.#isOver || more === 0) return true;
    if (more < 0) this.#room.release(this.#client, -more);
    else if (!this.#room.tryTake(this.#client, more)) return false;
    this.#amount += more;
    return true;
  }

  /** As `tryAdd`, but sets the total size. */
  trySet(amount: number): boolean {
    return this.tryAdd(amount - this.#amount);
  }

  /** Adds the amount even beyond the client's share. */
  overdraw(more: number): void {
    if (this.#isOver) return;
    this.#room.overdraw(this.#client, more);
    this.#amount += more;
  }

  /**
   * Charges for a part of the use. The returned function sets the part's size; if there is no room for more,
   * it leaves the size unchanged and throws the room's refusal.
   */
  part(): (amount: number) => void {
    let charged = 0;
    return (amount) => {
      if (!this.tryAdd(amount - charged)) throw this.#room.refusal(this.#client);
      charged = amount;
    };
  }

  /** Releases the whole amount. Idempotent. */
  end(): void {
    if (this.#amount > 0) this.#room.release(this.#client, this.#amount);
    this.#amount = 0;
    this.#isOver = true;
  }
}
