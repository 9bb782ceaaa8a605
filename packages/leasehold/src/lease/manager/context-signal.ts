import type { World } from "../../common/ports.js";

/**
 * A signal whose listeners run in the async context in which the signal was created, not in that of the
 * abort.
 */
export class ContextSignal {
  readonly #controller = new AbortController();
  readonly #enter: (<R>(run: () => R) => R) | undefined;

  constructor({ hooks }: Pick<World, "hooks">) {
    this.#enter = hooks?.snapshot();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    const abort = () => this.#controller.abort(reason);
    if (this.#enter === undefined) abort();
    else this.#enter(abort);
  }
}
