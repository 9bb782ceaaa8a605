import type { FairShares } from "leasehold/common";
import { CoreError } from "../../state/errors.js";

/** What is kept of one request, counted in the room that all have together, those of gRPC, too. */
export class KeptBytes {
  readonly #shares: FairShares<string>;
  readonly #client: string;
  #counted = 0;
  #isOver = false;

  constructor(shares: FairShares<string>, client: string) {
    this.#shares = shares;
    this.#client = client;
  }

  /**
   * A part of it, whose bytes are told again and again.
   *
   * @returns throws CoreError `tooManyRequests` if there is no room for more
   */
  part(): (bytes: number) => void {
    let counted = 0;
    return (bytes) => {
      this.#change(bytes - counted);
      counted = bytes;
    };
  }

  #change(more: number): void {
    // What counts no more must not count again.
    if (this.#isOver || more === 0) return;
    if (more < 0) this.#shares.giveBack(this.#client, -more);
    else if (!this.#shares.take(this.#client, more)) throw new CoreError("tooManyRequests");
    this.#counted += more;
  }

  /** The request is over, in whatever way: nothing of it is kept. */
  end(): void {
    if (this.#counted > 0) this.#shares.giveBack(this.#client, this.#counted);
    this.#counted = 0;
    this.#isOver = true;
  }
}
