import type { EventLog } from "../../../runtime/event-log.js";
import type { LogEvents } from "../../../runtime/log-events.js";
import type { FleasePeer } from "../../peer.js";
import type { Reading } from "../../protocol/clock.js";
import type { Cluster } from "../../views/cluster.js";
import type { Link } from "../transport/link.js";
import type { Transport } from "../transport/transport.js";

/** The participant, as seen by its views. */
export interface ViewsHost {
  readonly nodeId: string;
  readonly role: string;
  readonly cluster: Cluster;
  readonly peer: FleasePeer;
  readonly transport: Transport;
  now(): Reading;
  /** The guard against a second process under this id (`DuplicateWatch`). */
  readonly membership: {
    readonly duplicates: { votes(mono: number): boolean; counts(id: string): boolean };
  };
  /** The connection to a member, including one outside every view. */
  linkTo(id: string): Link | undefined;
  /** Connects to the members of the present view, and disconnects from others. */
  dialMembers(): void;
  readonly events: Pick<EventLog<LogEvents>, "log" | "limited">;
}
