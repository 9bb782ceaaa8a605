import { watchAbort } from "../../common/abort-watch.js";
import { LeaseholdError } from "../errors.js";
import type { Held } from "../forms/exclusive.js";

/**
 * Names of which this participant has readers. A call without a mode does not look for readers, so beside its
 * own it would hold at the same time as they do, and the program that makes both calls has forgotten to say
 * what the second is. Readers of other participants nobody here knows.
 */
export class OwnReaders {
  readonly #counts = new Map<string, number>();
  /** Their signals have aborted: some were only asked to stop, and are held until their work has settled. */
  readonly #stopping = new Set<Held>();

  add(reader: Held): void {
    const { resource, signal } = reader;
    this.#counts.set(resource, (this.#counts.get(resource) ?? 0) + 1);
    this.#forgetEnded();
    watchAbort(signal, () => {
      this.#stopping.add(reader);
      this.#forgetEnded();
    });
  }

  #forgetEnded(): void {
    for (const reader of this.#stopping) {
      if (reader.ended === undefined) continue;
      this.#stopping.delete(reader);
      const left = this.#counts.get(reader.resource)! - 1;
      if (left > 0) this.#counts.set(reader.resource, left);
      else this.#counts.delete(reader.resource);
    }
  }

  /** @throws LeaseholdError `INVALID_CONFIG` */
  refuseBeside(resource: string): void {
    if (this.#counts.size === 0) return;
    this.#forgetEnded();
    if (!this.#counts.has(resource)) return;
    const name = JSON.stringify(resource);
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `this participant has readers of ${name}, for which a call without a mode does not wait: give mode: "exclusive"`,
    );
  }
}
