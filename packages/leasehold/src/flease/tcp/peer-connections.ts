import type { LeaseholdError } from "../../lease/errors.js";
import type { EventLog } from "../../runtime/event-log.js";
import type { LogEvents } from "../../runtime/log-events.js";
import type { Role } from "../../runtime/security/roles.js";
import type { DataPublisher } from "../admin/data-publisher.js";
import type { FleasePeer } from "../peer.js";
import type { Cluster } from "../views/cluster.js";
import { writeClusterDocument } from "./cluster.js";
import type { TcpMedium } from "./medium.js";
import type { MemberDialer } from "./member-dialer.js";
import type { Membership } from "./membership.js";
import type { PeerMessages } from "./peer-messages.js";
import type { ServedCalls } from "./served-calls.js";
import type { Link } from "./transport/link.js";
import type { Transport } from "./transport/transport.js";
import type { ConnectionHandler } from "./transport/transport-handler.js";
import type { NodeViews } from "./views/node-views.js";
import type { Rejection } from "./wire/hello.js";
import type { Identity } from "./wire/identity.js";

/** The participant, as seen by its connections. */
export interface ConnectionsHost {
  readonly nodeId: string;
  readonly role: Role;
  /** Its own label, at most 256 bytes. */
  readonly label: string | undefined;
  readonly cluster: Cluster;
  readonly peer: FleasePeer;
  readonly medium: TcpMedium;
  readonly dialer: MemberDialer;
  readonly membership: Membership;
  readonly views: NodeViews;
  readonly messages: PeerMessages;
  readonly calls: ServedCalls;
  readonly publisher: DataPublisher;
  readonly transport: Transport;
  readonly events: EventLog<LogEvents>;
  /** Called whenever a member has connected, disconnected or refused. */
  readonly onMembersChanged: () => void;
}

/** Timeout for a member to confirm a label. */
const introduceTimeoutMs = 5_000;

/** Admits peers, and keeps each part of a participant informed about who is connected. */
export class PeerConnections implements ConnectionHandler {
  readonly #node: ConnectionsHost;

  constructor(node: ConnectionsHost) {
    this.#node = node;
  }

  connected(link: Link): void {
    const { cluster, medium, membership, peer, role, views } = this.#node;
    peer.introduce(link.owner, link.account);
    const index = link.role === "member" ? cluster.settings.members.indexOf(link.peerId) : -1;
    // MUST also take a member whose id is not known yet: our answers confirm it (`DuplicateWatch`).
    if (link.role === "member" && role === "member") membership.connected(link);
    if (index === -1) medium.add(link);
    else this.#place(link, index);
    views.connected(link);
  }

  /** Places links of members that have become known. */
  placeKnown(): void {
    const { medium, peer } = this.#node;
    const { members } = this.#node.cluster.settings;
    for (const link of medium.known(members)) {
      peer.forget(link.handle);
      this.#place(link, members.indexOf(link.peerId));
    }
  }

  /** Places a member's link to itself. */
  placeLoopback(): void {
    const { calls, cluster, label, medium, nodeId, peer, transport } = this.#node;
    const { loopback } = transport;
    if (loopback === undefined) return;
    medium.place(loopback, cluster.settings.members.indexOf(nodeId));
    peer.introduce(loopback.owner, loopback.account);
    calls.setLabel(loopback, label);
  }

  /** From here on this link leads to the member with this index. */
  #place(link: Link, index: number): void {
    const { dialer, events, medium, publisher } = this.#node;
    medium.place(link, index);
    dialer.accepted(link.address);
    this.#introduce(link);
    publisher.connected();
    const { peerId: member, address } = link;
    events.log("member-connected", `connected to member ${member} at ${address}`, { member, address });
    this.#node.onMembersChanged();
  }

  /** Sends our label once on each connection: members include it in answers about holders. */
  #introduce(link: Link): void {
    const { label, transport } = this.#node;
    if (label === undefined) return;
    transport.call(link, "label", { label }, introduceTimeoutMs).catch(() => {
      // On failure this member shows only the name.
    });
  }

  disconnected(link: Link, reason: string): void {
    const { calls, events, medium, membership, messages, peer } = this.#node;
    messages.disconnected(link);
    calls.disconnected(link);
    peer.gone(link.owner, link.account);
    if (medium.remove(link)) peer.forget(link.handle);
    membership.disconnected(link);
    if (!medium.displace(link)) return;
    peer.forget(link.handle);
    const { peerId: member, address } = link;
    events.log("member-lost", `lost member ${member}: ${reason}`, { member, address, reason });
    this.#node.onMembersChanged();
  }

  refused(address: string, error: LeaseholdError): void {
    this.#node.dialer.refused(address, error);
    this.#node.onMembersChanged();
    const { code } = error;
    const text = `this ${this.#node.role} cannot connect to ${error.message}`;
    this.#node.events.limited("connection-refused", `${code} ${address}`, text, { address, code });
  }

  refusedAsDuplicate(memberId: string, text: string): void {
    this.#node.membership.refusedBy(memberId, text);
  }

  duplicateRefused(link: Link, address: string): void {
    if (link !== this.#node.transport.loopback) this.#node.membership.reportRival(link, address);
  }

  repelled(address: string, cause: string, text: string, isCredential: boolean): void {
    const id = isCredential ? "credential-refused" : "connection-repelled";
    this.#node.events.limited(id, cause, `no connection from ${address}: ${text}`, { address, cause });
  }

  /** A loss was logged by `disconnected`; the transport keeps trying and counts. */
  unreachable(): void {}

  admit(peer: Identity): Rejection | undefined {
    const { cluster, medium, membership, role: ours } = this.#node;
    const { role, nodeId: id } = peer;
    if (role !== "member") return undefined;
    if (!cluster.settings.members.includes(id) && !medium.mayCome(id, ours))
      return { reason: "notAdmitted", text: `${JSON.stringify(id)} is no member of this cluster` };
    const objection = membership.duplicates.objection(id, peer.incarnation);
    return objection === undefined ? undefined : { reason: "twin", text: objection };
  }

  clusterDocument(): string {
    return writeClusterDocument(this.#node.cluster, this.#node.views.document());
  }
}
