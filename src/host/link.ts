import type { Role } from "./transport-handler.js";

/** One peer, connected. */
export class Link {
  readonly role: Role = "member";
  readonly peerId: string = "";
  /** 16 hexadecimal digits. */
  readonly incarnation: string = "";
  /** `peerId.incarnation`: the owner of every ballot in this peer's requests. */
  readonly owner: string = "";
  /** The address that was dialed, or the one the connection came from. */
  readonly address: string = "";
  /** True when this process dialed. */
  readonly dialed: boolean = false;
  /** What the accepting member said of the cluster, JSON; `""` unless a client dialed. */
  readonly clusterDocument: string = "";
  /** The protocol side's own number for this peer. The transport does not look at it. */
  handle = -1;

  /** False as soon as the link is closed. */
  get open(): boolean {
    throw new Error("to be written");
  }

  /** The smallest of the recent round trips, ms; `undefined` before the first. */
  get roundTripMs(): number | undefined {
    throw new Error("to be written");
  }

  /** Closes the connection; `disconnected` is called with the reason. A dialed address is dialed again. */
  close(reason: string): void {
    throw new Error(`to be written ${reason}`);
  }
}
