import type { FleasePeer } from "../peer.js";
import { votersOf } from "../views/view.js";
import type { Reading } from "../protocol/clock.js";
import type { Cluster } from "../views/cluster.js";
import type { Membership } from "./membership.js";
import type { Link } from "./transport/link.js";
import type { Transport } from "./transport/transport.js";
import type { MemberStatus, PeerStatus } from "./types.js";

/** The parts of a member that its status is read from. */
export interface StatusSource {
  readonly nodeId: string;
  readonly cluster: Cluster;
  readonly peer: FleasePeer;
  readonly membership: Membership;
  readonly transport: Transport;
  now(): Reading;
  /** The link to a member, by its index in the cluster. */
  link(member: number): Link | undefined;
}

/** Builds a member's status. */
export function memberStatus(node: StatusSource, address: string): MemberStatus {
  const { peer, cluster, transport } = node;
  const now = node.now();
  const { acceptor } = peer;
  const behindMs = acceptor?.behindMs("", now) ?? 0;
  const readyInMs = Math.ceil(Math.max(acceptor?.recoveryWaitLeftMs(now) ?? 0, behindMs));
  const notice = peer.fault ?? node.membership.duplicates.notice(now.mono) ?? peer.views.notice;
  const usage = process.cpuUsage();
  const clients = [...transport.links].filter((link) => link.role !== "member");
  return {
    id: node.nodeId,
    address,
    cluster: cluster.name,
    view: peer.views.view.number,
    incarnation: transport.identity.incarnation,
    state: memberState(node),
    ...(notice === undefined ? {} : { notice }),
    readyInMs,
    resources: acceptor?.size ?? 0,
    waiters: peer.waiters.size,
    ttlMaxMs: cluster.settings.ttlMaxMs,
    maxClockSkewMs: cluster.settings.maxClockSkewMs,
    peers: peerStatuses(node),
    clients: clients.length,
    clientsQueuedBytes: clients.reduce((sum, link) => sum + link.waitingBytes, 0),
    counters: { ...transport.counters },
    cpuMs: (usage.user + usage.system) / 1_000,
    rssBytes: process.memoryUsage.rss(),
  };
}

export function memberState(node: StatusSource): MemberStatus["state"] {
  if (node.peer.fault !== undefined) return "clock-fault";
  if (node.membership.duplicates.isDuplicate) return "twin";
  if (node.peer.views.isLearner) return "learner";
  // The clocks do not decide this: the acceptor has yet to notice that the wait is over.
  const { acceptor, views } = node.peer;
  return acceptor?.ready === true && views.mayVote && node.membership.duplicates.votes(node.now().mono)
    ? "ready"
    : "recovering";
}

function peerStatuses(node: StatusSource): PeerStatus[] {
  const statuses: PeerStatus[] = [];
  const voters = votersOf(node.peer.views.view);
  for (const [index, id] of node.cluster.settings.members.entries()) {
    if (id === node.nodeId || !voters.includes(id)) continue;
    const link = node.link(index);
    const roundTripMs = link?.roundTripMs;
    const skew = link === undefined ? undefined : node.peer.skew.skew(index);
    statuses.push({
      id,
      address: node.cluster.addresses[index]!,
      connected: link !== undefined,
      ...(link && { queuedBytes: link.waitingBytes }),
      ...(roundTripMs === undefined ? {} : { roundTripMs }),
      ...(skew === undefined ? {} : { skewMs: skew.skewMs, skewErrorMs: skew.errorMs }),
    });
  }
  return statuses;
}
