/** A budget that starts with `burst` and grows by `perTick` at each tick, up to `burst`. */
export class Budget {
  readonly #burst: number;
  readonly #perTick: number;
  #left: number;

  constructor({ burst, perTick }: { readonly burst: number; readonly perTick: number }) {
    this.#burst = burst;
    this.#perTick = perTick;
    this.#left = burst;
  }

  /** Takes one; false if none is left. */
  spend(): boolean {
    this.#left -= 1;
    return this.#left >= 0;
  }

  refill(): void {
    this.#left = Math.min(this.#burst, Math.max(0, this.#left) + this.#perTick);
  }
}
