import type { FairShares } from "leasehold/common";
import { CoreError } from "../../state/errors.js";

/** Memory of one request, in room shared by all requests, those of gRPC included. */
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
   * Accounts for a part of it, whose size is updated repeatedly.
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
    // A request that is over must not count again.
    if (this.#isOver || more === 0) return;
    if (more < 0) this.#shares.giveBack(this.#client, -more);
    else if (!this.#shares.take(this.#client, more)) throw new CoreError("tooManyRequests");
    this.#counted += more;
  }

  /** The request is over: nothing of it is kept. */
  end(): void {
    if (this.#counted > 0) this.#shares.giveBack(this.#client, this.#counted);
    this.#counted = 0;
    this.#isOver = true;
  }
}
