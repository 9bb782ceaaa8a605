import type { Socket } from "node:net";
import { FairShares } from "leasehold/common";

/** The connections of one or more ports, in fair shares by address. */
export class Connections {
  readonly max: number;
  readonly #shares: FairShares<string>;
  readonly #refuse: (text: string) => void;
  #open = 0;
  #refused = 0;

  /** @param refuse logs a refusal, for operators; called often with the same text */
  constructor(max: number, refuse: (text: string) => void) {
    this.max = max;
    this.#shares = new FairShares(max);
    this.#refuse = refuse;
  }

  get open(): number {
    return this.#open;
  }

  /** Count since the server began. */
  get refused(): number {
    return this.#refused;
  }

  /** False: there is no room, or no share left for its address. */
  admit(socket: Socket): boolean {
    const from = socket.remoteAddress ?? "";
    if (!this.#shares.take(from, 1)) {
      this.#refused += 1;
      this.#refuse(
        `a connection${from === "" ? "" : ` from ${from}`} was refused: ${this.#open} of ${this.max} are open, ` +
          `and one address gets no more than are free`,
      );
      return false;
    }
    this.#open += 1;
    socket.once("close", () => {
      this.#open -= 1;
      this.#shares.giveBack(from, 1);
    });
    return true;
  }
}
