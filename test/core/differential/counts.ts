import type { Sequence } from "./action.js";
import type { Compared } from "./pair.js";

/** What sequences have asked for, and what became of it. */
export class Counts {
  readonly answered = new Map<string, number>();
  readonly #refused = new Map<string, number>();
  #sequences = 0;
  #lines = 0;
  /** Differences that did not come again when there was more time: a busy machine. */
  onceOnly = 0;

  took({ actions }: Sequence, { answers, lines }: Compared): void {
    this.#sequences += 1;
    this.#lines += lines;
    for (const [at, answer] of answers.entries()) {
      const { service, method } = actions[at]!;
      const isRefusal = typeof answer === "string" && answer !== "waits";
      const [counts, name] = isRefusal ? [this.#refused, answer] : [this.answered, `${service}.${method}`];
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }

  get text(): string {
    const listed = (counts: Map<string, number>) =>
      [...counts].toSorted(([, a], [, b]) => b - a).map(([name, count]) => `${count} ${name}`);
    const once = this.onceOnly === 0 ? "" : `; ${this.onceOnly} differed once, and not again with more time`;
    return [
      `${this.#sequences} sequences, ${this.#lines} lines of watches${once}`,
      `answered: ${listed(this.answered).join(", ")}`,
      `refused: ${listed(this.#refused).join(", ")}`,
    ].join("\n");
  }
}
