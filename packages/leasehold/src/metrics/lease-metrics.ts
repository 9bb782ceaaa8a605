import type { Clock } from "../common/ports.js";
import type { Lease, LeaseEvents, Leases } from "../lease/types.js";
import type { Catalogued } from "./catalogue.js";
import type { RecordedSeries } from "./types.js";

/**
 * Counts the events of a participant's leases. Keeps one entry in memory for each held lease.
 *
 * @returns a function that ends it
 */
export function observeLeases(
  leases: Leases,
  registry: Catalogued,
  clock: Pick<Clock, "monotonicMs">,
): () => void {
  /** On the steady clock, in whole ms: V8 stores a small integer inline, and any other number on the heap. */
  const heldSince = new Map<Lease, number>();
  const waiters = registry.series("leasehold_waiters", []);
  const held = registry.series("leasehold_leases_held", []);
  const holdDuration = registry.series("leasehold_hold_duration", []);
  const renewals = registry.series("leasehold_renewals", []);
  const slack = registry.series("leasehold_renewal_slack", []);
  const released = registry.series("leasehold_leases_released", []);
  const calls = new Map<string, { readonly count: RecordedSeries; readonly duration: RecordedSeries }>();
  const callsOf = (outcome: string) => {
    const known = calls.get(outcome);
    if (known !== undefined) return known;
    const labels = [outcome.toLowerCase()] as const;
    const made = {
      count: registry.series("leasehold_acquisitions", labels),
      duration: registry.series("leasehold_acquisition_duration", labels),
    };
    calls.set(outcome, made);
    return made;
  };
  const ended = (lease: Lease): void => {
    const sinceMs = heldSince.get(lease);
    if (sinceMs === undefined) return;
    heldSince.delete(lease);
    held.add(-1);
    holdDuration.observe(Math.max(0, clock.monotonicMs() - sinceMs) / 1_000, lease.resource);
  };
  const listeners: { [Name in keyof LeaseEvents]: (event: LeaseEvents[Name]) => void } = {
    asked: () => waiters.add(),
    settled: ({ resource, outcome, waitedMs }) => {
      waiters.add(-1);
      const { count, duration } = callsOf(outcome);
      count.add();
      duration.observe(waitedMs / 1_000, resource);
    },
    acquired: ({ lease }) => {
      heldSince.set(lease, Math.round(clock.monotonicMs()));
      held.add();
    },
    renewed: ({ lease, slackMs }) => {
      renewals.add();
      slack.observe(slackMs / lease.ttlMs, lease.resource);
    },
    "renewal-late": () => registry.add("leasehold_renewals_late", []),
    lost: ({ lease, error }) => {
      registry.add("leasehold_leases_lost", [error.reason]);
      ended(lease);
    },
    released: ({ lease }) => {
      released.add();
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
    held.add(-heldSince.size);
    heldSince.clear();
  };
}
