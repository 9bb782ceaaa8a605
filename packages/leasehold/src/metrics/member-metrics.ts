import type { Member, MemberStatus } from "../flease/tcp/types.js";
import type { Catalogued } from "./catalogue.js";

const states = [
  "ready",
  "recovering",
  "learner",
  "clock-fault",
  "twin",
] as const satisfies readonly MemberStatus["state"][];

/** Exports a member's status, updated at each reading. Returns a function that stops it. */
export function observeMember({ status }: Pick<Member, "status">, registry: Catalogued): () => void {
  return registry.beforeRead(() => show(status(), registry));
}

function show(status: MemberStatus, registry: Catalogued): void {
  for (const state of states) registry.set("leasehold_member_ready", [state], status.state === state ? 1 : 0);
  registry.set("leasehold_member_recovery_left", [], status.readyInMs / 1_000);
  registry.set("leasehold_member_resources", [], status.resources);
  registry.set("leasehold_member_waiters", [], status.waiters);
  registry.set("leasehold_member_clients", [], status.clients);
  registry.set("leasehold_member_view", [], status.view);
  registry.set("leasehold_member_skew_bound", [], status.maxClockSkewMs / 1_000);
  registry.clear("leasehold_member_queued");
  registry.set("leasehold_member_queued", ["clients"], status.clientsQueuedBytes);
  const perPeer = [
    "leasehold_member_peer_connected",
    "leasehold_member_peer_round_trip",
    "leasehold_member_peer_skew",
    "leasehold_member_peer_skew_error",
  ] as const;
  for (const name of perPeer) registry.clear(name);
  for (const { id, connected, queuedBytes, roundTripMs, skewMs, skewErrorMs } of status.peers) {
    registry.set("leasehold_member_peer_connected", [id], connected ? 1 : 0);
    if (queuedBytes !== undefined) registry.set("leasehold_member_queued", [id], queuedBytes);
    if (roundTripMs !== undefined)
      registry.set("leasehold_member_peer_round_trip", [id], roundTripMs / 1_000);
    if (skewMs !== undefined) registry.set("leasehold_member_peer_skew", [id], skewMs / 1_000);
    if (skewErrorMs !== undefined)
      registry.set("leasehold_member_peer_skew_error", [id], skewErrorMs / 1_000);
  }
  for (const [event, count] of Object.entries(status.counters))
    registry.set("leasehold_member_events", [event], count);
}
