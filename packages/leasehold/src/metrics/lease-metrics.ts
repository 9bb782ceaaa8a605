import { getOrInsert } from "../common/maps.js";
import type { Clock } from "../common/ports.js";
import type { Lease, LeaseEvents, Leases } from "../lease/types.js";
import type { Catalogued } from "./catalogue.js";

/**
 * Counts the events of a participant's leases. Its own memory is one entry for each lease that is held.
 *
 * @returns a function that ends it
 */
export function observeLeases(leases: Leases, registry: Catalogued, clock: Clock): () => void {
  const heldSince = new Map<Lease, number>();
  const outcomes = new Map<string, readonly [string]>();
  const ended = (lease: Lease): void => {
    const sinceMs = heldSince.get(lease);
    if (sinceMs === undefined) return;
    heldSince.delete(lease);
    registry.add("leasehold_leases_held", [], -1);
    const seconds = (clock.monotonicMs() - sinceMs) / 1_000;
    registry.observe("leasehold_hold_duration", [], seconds, lease.resource);
  };
  const listeners: { [Name in keyof LeaseEvents]: (event: LeaseEvents[Name]) => void } = {
    asked: () => registry.add("leasehold_waiters", [], 1),
    settled: ({ resource, outcome, waitedMs }) => {
      registry.add("leasehold_waiters", [], -1);
      const label = getOrInsert(outcomes, outcome, () => [outcome.toLowerCase()] as const);
      registry.add("leasehold_acquisitions", label);
      const seconds = waitedMs / 1_000;
      registry.observe("leasehold_acquisition_duration", label, seconds, resource);
    },
    acquired: ({ lease }) => {
      heldSince.set(lease, clock.monotonicMs());
      registry.add("leasehold_leases_held", [], 1);
    },
    renewed: ({ lease, slackMs }) => {
      registry.add("leasehold_renewals", []);
      const share = slackMs / lease.ttlMs;
      registry.observe("leasehold_renewal_slack", [], share, lease.resource);
    },
    "renewal-late": () => registry.add("leasehold_renewals_late", []),
    lost: ({ lease, error }) => {
      registry.add("leasehold_leases_lost", [error.reason]);
      ended(lease);
    },
    released: ({ lease }) => {
      registry.add("leasehold_leases_released", []);
      ended(lease);
    },
  };
  // These are shown as 0 from the start: an alert on their rate needs a first value.
  for (const name of ["leasehold_leases_held", "leasehold_waiters"] as const) registry.add(name, [], 0);
  for (const name of ["leasehold_renewals", "leasehold_renewals_late", "leasehold_leases_released"] as const)
    registry.add(name, [], 0);
  for (const reason of ["expired", "clock-fault"]) registry.add("leasehold_leases_lost", [reason], 0);
  const stops = [
    leases.on("asked", listeners.asked),
    leases.on("settled", listeners.settled),
    leases.on("acquired", listeners.acquired),
    leases.on("renewed", listeners.renewed),
    leases.on("renewal-late", listeners["renewal-late"]),
    leases.on("lost", listeners.lost),
    leases.on("released", listeners.released),
  ];
  return () => {
    for (const stop of stops) stop();
    registry.add("leasehold_leases_held", [], -heldSince.size);
    heldSince.clear();
  };
}
