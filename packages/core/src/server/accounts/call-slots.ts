import { Room } from "leasehold/common";
import { tooManyRequests } from "../../state/errors.js";

/** Each waiting call holds a connection, but only the head of its request has been read. */
const waitingMax = 1_024;

/** Bounds concurrent calls; others queue in order of arrival. */
export class CallSlots {
  #free: number;
  readonly #queue = new Set<() => void>();
  readonly #waiting = new Room(waitingMax, tooManyRequests);

  constructor(max: number) {
    this.#free = max;
  }

  /**
   * Resolves to a function that frees the slot; call it once.
   *
   * @param client gets a share of the queue
   * @param gone removes the call from the queue, and rejects with its reason
   * @throws CoreError `tooManyRequests`, by rejection: too many wait
   */
  take(client: string, gone: AbortSignal): Promise<() => void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve(this.#release);
    }
    if (!this.#waiting.tryTake(client, 1)) return Promise.reject(this.#waiting.refusal(client));
    return new Promise<() => void>((resolve, reject) => {
      const left = () => {
        this.#queue.delete(next);
        reject(gone.reason as Error);
      };
      const next = () => {
        gone.removeEventListener("abort", left);
        resolve(this.#release);
      };
      if (gone.aborted) left();
      else {
        gone.addEventListener("abort", left, { once: true });
        this.#queue.add(next);
      }
    }).finally(() => this.#waiting.release(client, 1));
  }

  readonly #release = (): void => {
    const [next] = this.#queue;
    if (next === undefined) this.#free += 1;
    else {
      this.#queue.delete(next);
      next();
    }
  };
}
