import { CoreError } from "../../state/errors.js";

/** Each waiting call holds a connection, of whose request only the head has been read. */
const waitingMax = 1_024;

/** Bounds concurrent calls; others queue in order of arrival. */
export class CallSlots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(max: number) {
    this.#free = max;
  }

  /**
   * Resolves to a function that frees the slot; call it once.
   *
   * @param gone removes the call from the queue, and rejects with its reason
   * @throws CoreError `tooManyRequests`, by rejection: too many wait
   */
  take(gone: AbortSignal): Promise<() => void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve(this.#giveBack);
    }
    if (this.#waiting.size >= waitingMax) return Promise.reject(new CoreError("tooManyRequests"));
    return new Promise((resolve, reject) => {
      const left = () => {
        this.#waiting.delete(next);
        reject(gone.reason as Error);
      };
      const next = () => {
        gone.removeEventListener("abort", left);
        resolve(this.#giveBack);
      };
      if (gone.aborted) left();
      else {
        gone.addEventListener("abort", left, { once: true });
        this.#waiting.add(next);
      }
    });
  }

  readonly #giveBack = (): void => {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  };
}
