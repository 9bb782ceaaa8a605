import { CoreError } from "../../state/errors.js";

/** Each that waits holds a connection, whose request has not been read beyond its head. */
const waitingMax = 1_024;

/** So many calls at a time; others wait in the order in which they came. */
export class CallSlots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(max: number) {
    this.#free = max;
  }

  /**
   * Resolves with what gives the slot back; to be called once.
   *
   * @param gone who waits is taken out of the line, and the promise rejects with its reason
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
