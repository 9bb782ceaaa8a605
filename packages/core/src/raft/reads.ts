import type { ReadState } from "./types.js";

interface Round {
  readonly number: number;
  readonly index: number;
  readonly ids: readonly number[];
}

/**
 * Reads without writing to the log (ReadIndex, thesis 6.4). The commit index is noted, and a round of
 * heartbeats confirms that no other leader had been elected by then; the read may be answered once that index
 * is applied. Reads that arrive before the round begins share it.
 */
export class Reads {
  /** Reads since the last round began. */
  #waiting: number[] = [];
  #rounds: Round[] = [];
  #inRounds = 0;
  /** The number of the newest round; heartbeats carry it. */
  current = 0;

  get count(): number {
    return this.#waiting.length + this.#inRounds;
  }

  get areWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  add(id: number): void {
    this.#waiting.push(id);
  }

  /** Begins a round of heartbeats. Waiting reads stay for the next one. */
  nextRound(): void {
    this.current += 1;
  }

  /** Begins a round for all waiting reads. */
  beginRound(commit: number): void {
    this.nextRound();
    this.#rounds.push({ number: this.current, index: commit, ids: this.#waiting });
    this.#inRounds += this.#waiting.length;
    this.#waiting = [];
  }

  /** A majority has answered this round, which confirms earlier ones, too. */
  confirmed(round: number, answer: (read: ReadState) => void): void {
    while (this.#rounds.length > 0 && this.#rounds[0]!.number <= round) {
      const { index, ids } = this.#rounds.shift()!;
      this.#inRounds -= ids.length;
      for (const id of ids) answer({ id, index });
    }
  }
}
