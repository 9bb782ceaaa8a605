/** A budget of `most` at once, and `each` more per tick. */
export class Budget {
  readonly #most: number;
  readonly #each: number;
  #left: number;

  constructor(most: number, each: number) {
    this.#most = most;
    this.#each = each;
    this.#left = most;
  }

  /** False: it is used up. */
  spend(): boolean {
    this.#left -= 1;
    return this.#left >= 0;
  }

  refill(): void {
    this.#left = Math.min(this.#most, Math.max(0, this.#left) + this.#each);
  }
}
