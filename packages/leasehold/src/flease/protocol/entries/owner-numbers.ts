/**
 * Numbers for the owners in entries, so that an entry holds four bytes instead of a string. A number is free
 * again when no entry uses it.
 */
export class OwnerNumbers {
  readonly #numbers = new Map<string, number>();
  /** Number 0 means no owner and is not counted. */
  readonly #owners = [""];
  readonly #uses = [0];
  readonly #free: number[] = [];

  get size(): number {
    return this.#numbers.size;
  }

  owner(number: number): string {
    return this.#owners[number]!;
  }

  /** Adds a reference to this owner. */
  take(owner: string): number {
    if (owner === "") return 0;
    let number = this.#numbers.get(owner);
    if (number === undefined) {
      number = this.#free.pop() ?? this.#owners.length;
      this.#numbers.set(owner, number);
      this.#owners[number] = owner;
      this.#uses[number] = 0;
    }
    this.#uses[number]! += 1;
    return number;
  }

  /** Drops a reference to this number. */
  give(number: number): void {
    if (number === 0) return;
    this.#uses[number]! -= 1;
    if (this.#uses[number] !== 0) return;
    this.#numbers.delete(this.#owners[number]!);
    this.#owners[number] = "";
    this.#free.push(number);
  }
}
