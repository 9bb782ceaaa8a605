import { setImmediate as nextTurn } from "node:timers/promises";
import type { Steps } from "../../state/steps.js";

/**
 * Longest time that one piece of work may block the event loop, ms. Several pieces may run concurrently, and
 * others then get their turns, so heartbeats are sent and answered in time under any load.
 */
export const turnMs = 4;

/** Splits long work into turns of the event loop. */
export class Turns {
  #endMs = performance.now() + turnMs;

  get isOver(): boolean {
    return performance.now() >= this.#endMs;
  }

  /** Resolves when everything else waiting for the event loop has run. */
  async next(): Promise<void> {
    await nextTurn();
    this.#endMs = performance.now() + turnMs;
  }
}

/** Iterates in turns. @throws the signal's reason */
export async function* inTurns<Item>(items: Iterable<Item>, signal?: AbortSignal): AsyncGenerator<Item> {
  const turns = new Turns();
  for (const item of items) {
    if (turns.isOver) await turns.next();
    signal?.throwIfAborted();
    yield item;
  }
}

/** Larger batches do not make a write to disk faster. */
const batchBytes = 256 * 1024;

/**
 * Iterates in turns, several items at a time: awaiting each of a million small pieces takes longer than
 * making it.
 *
 * @throws the signal's reason
 */
export async function* batchesInTurns(
  pieces: Iterable<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<readonly Uint8Array[]> {
  const turns = new Turns();
  let batch: Uint8Array[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    batch.push(piece);
    bytes += piece.length;
    if (bytes < batchBytes && !turns.isOver) continue;
    signal?.throwIfAborted();
    yield batch;
    batch = [];
    bytes = 0;
    if (turns.isOver) await turns.next();
  }
  signal?.throwIfAborted();
  yield batch;
}

/** @throws the signal's reason */
export async function finishInTurns<Result>(steps: Steps<Result>, signal?: AbortSignal): Promise<Result> {
  const turns = new Turns();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (!turns.isOver) continue;
    await turns.next();
    signal?.throwIfAborted();
  }
}
