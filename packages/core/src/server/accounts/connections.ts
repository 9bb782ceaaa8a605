import type { Socket } from "node:net";
import { Room } from "leasehold/common";

/** The connections to one or more ports, in fair shares by address. */
export class Connections {
  readonly max: number;
  readonly #room: Room;
  readonly #refuse: (text: string) => void;
  #refused = 0;

  /** @param refuse logs a refusal, for operators; called often with the same text */
  constructor(max: number, refuse: (text: string) => void) {
    this.max = max;
    this.#room = new Room(max, (from) => {
      const source = from === "" ? "" : ` from ${from}`;
      return new Error(
        `a connection${source} was refused: ${this.open} of ${max} are open, and one address gets no more than are free`,
      );
    });
    this.#refuse = refuse;
  }

  get open(): number {
    return this.#room.used;
  }

  /** Number of refusals since the server began. */
  get refused(): number {
    return this.#refused;
  }

  /** Returns false if there is no room, or no share left for the address. */
  admit(socket: Socket): boolean {
    const from = socket.remoteAddress ?? "";
    if (!this.#room.tryTake(from, 1)) {
      this.#refused += 1;
      this.#refuse(this.#room.refusal(from).message);
      return false;
    }
    socket.once("close", () => this.#room.release(from, 1));
    return true;
  }
}
