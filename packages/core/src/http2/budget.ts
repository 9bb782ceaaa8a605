/** A budget of `burst` at once, to which each tick adds `perTick`. */
export class Budget {
  readonly #burst: number;
  readonly #perTick: number;
  #left: number;

  constructor({ burst, perTick }: { readonly burst: number; readonly perTick: number }) {
    this.#burst = burst;
    this.#perTick = perTick;
    this.#left = burst;
  }

  /** Takes one; false if it is used up. */
  spend(): boolean {
    this.#left -= 1;
    return this.#left >= 0;
  }

  refill(): void {
    this.#left = Math.min(this.#burst, Math.max(0, this.#left) + this.#perTick);
  }
}
