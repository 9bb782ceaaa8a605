import { setImmediate as nextTurn } from "node:timers/promises";
import type { Steps } from "../../state/steps.js";

/**
 * How long one piece of work may keep the event loop at a time, ms. A few go on beside each other, and then
 * it is somebody else's turn: heartbeats are sent and answered in time, however much there is to do.
 */
export const turnMs = 4;

/** What keeps the event loop at most for a turn at a time. */
export class Turns {
  #endMs = performance.now() + turnMs;

  get isOver(): boolean {
    return performance.now() >= this.#endMs;
  }

  /** Resolves when all that waits for the event loop has had its turn. */
  async next(): Promise<void> {
    await nextTurn();
    this.#endMs = performance.now() + turnMs;
  }
}

/** @throws what the signal is aborted with */
export async function* inTurns<Item>(items: Iterable<Item>, signal?: AbortSignal): AsyncGenerator<Item> {
  const turns = new Turns();
  for (const item of items) {
    if (turns.isOver) await turns.next();
    signal?.throwIfAborted();
    yield item;
  }
}

/** So many bytes are more than one write to a disk gains by. */
const batchBytes = 256 * 1024;

/**
 * The same, some at a time: to wait for each of a million small pieces takes longer than to make it.
 *
 * @throws what the signal is aborted with
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

/** @throws what the signal is aborted with */
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
