/**
 * The metrics of leases, members, stores and processes. File nodes have their own catalogue, and the core
 * uses etcd's names.
 */
import type { MetricDefinition, MetricDefinitions, Recorder } from "./types.js";

/** Seconds, from a round trip within a data centre to a long wait. */
const latencies = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const holds = [0.01, 0.1, 1, 10, 60, 600, 3_600, 21_600, 86_400];
/**
 * When nothing goes wrong, two thirds of the lease are left at a renewal; below one third the renewal is
 * late.
 */
const slacks = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7];
const delays = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** Names have no unit and no `_total`: the formats add them. */
export const catalogue = {
  leasehold_acquisitions: {
    kind: "counter",
    unit: "",
    labels: ["outcome"],
    help: "Calls for a lease that have ended: acquired, held (by another), aborted, or an error's code in lower case.",
  },
  leasehold_acquisition_duration: {
    kind: "histogram",
    unit: "seconds",
    labels: ["outcome"],
    help: "Time from the call for a lease to its end, waiting included.",
    buckets: latencies,
  },
  leasehold_waiters: {
    kind: "gauge",
    unit: "",
    labels: [],
    help: "Calls for a lease that have not ended yet.",
  },
  leasehold_leases_held: { kind: "gauge", unit: "", labels: [], help: "Leases that this process holds." },
  leasehold_hold_duration: {
    kind: "histogram",
    unit: "seconds",
    labels: [],
    help: "Time from the acquisition of a lease to its release or loss.",
    buckets: holds,
  },
  leasehold_renewals: { kind: "counter", unit: "", labels: [], help: "Renewals that were confirmed." },
  leasehold_renewal_slack: {
    kind: "histogram",
    unit: "ratio",
    labels: [],
    help: "Share of the ttl that was left when a renewal was confirmed. At 0 the lease is lost.",
    buckets: slacks,
  },
  leasehold_renewals_late: {
    kind: "counter",
    unit: "",
    labels: [],
    help: "Leases that were not renewed in time: a request failed, or less than a third of the ttl was left.",
  },
  leasehold_leases_lost: {
    kind: "counter",
    unit: "",
    labels: ["reason"],
    help: "Lost leases.",
  },
  leasehold_leases_released: {
    kind: "counter",
    unit: "",
    labels: [],
    help: "Leases that the program ended.",
  },

  leasehold_member_ready: {
    kind: "gauge",
    unit: "",
    labels: ["state"],
    help: "1 for the state of this member, 0 for the others. Only a ready member has a vote.",
  },
  leasehold_member_recovery_left: {
    kind: "gauge",
    unit: "seconds",
    labels: [],
    help: "Time until this member's vote counts, 0 when it does.",
  },
  leasehold_member_resources: {
    kind: "gauge",
    unit: "",
    labels: [],
    help: "Resources that this member keeps.",
  },
  leasehold_member_waiters: { kind: "gauge", unit: "", labels: [], help: "Waiters that this member knows." },
  leasehold_member_clients: {
    kind: "gauge",
    unit: "",
    labels: [],
    help: "Clients connected to this member.",
  },
  leasehold_member_view: { kind: "gauge", unit: "", labels: [], help: "Number of the membership." },
  leasehold_member_peer_connected: {
    kind: "gauge",
    unit: "",
    labels: ["peer"],
    help: "1 if this member has a connection to that one.",
  },
  leasehold_member_peer_round_trip: {
    kind: "gauge",
    unit: "seconds",
    labels: ["peer"],
    help: "Smallest recent round trip to that member.",
  },
  leasehold_member_peer_skew: {
    kind: "gauge",
    unit: "seconds",
    labels: ["peer"],
    help: "That member's wall clock minus this one's, as measured.",
  },
  leasehold_member_peer_skew_error: {
    kind: "gauge",
    unit: "seconds",
    labels: ["peer"],
    help: "Error bound of the measured skew.",
  },
  leasehold_member_skew_bound: {
    kind: "gauge",
    unit: "seconds",
    labels: [],
    help: "The bound maxClockSkew: beyond it exclusion does not hold.",
  },
  leasehold_member_queued: {
    kind: "gauge",
    unit: "bytes",
    labels: ["peer"],
    help: "Bytes that wait for that member's socket, and for all clients together under `clients`.",
  },
  leasehold_member_events: {
    kind: "counter",
    unit: "",
    labels: ["event"],
    help: "Counters of this member since its start.",
  },

  leasehold_store_operation_duration: {
    kind: "histogram",
    unit: "seconds",
    labels: ["store", "operation", "outcome"],
    help: "Operations on stores: ok, conflict (another had written), or an error's code in lower case.",
    buckets: latencies.slice(0, 14),
  },
  leasehold_store_operations_pending: {
    kind: "gauge",
    unit: "",
    labels: ["store"],
    help: "Operations on a store without an answer yet. A store that hangs keeps them.",
  },
  leasehold_store_probe_duration: {
    kind: "histogram",
    unit: "seconds",
    labels: ["store", "outcome"],
    help: "Attempts to open and probe a store: ok, or an error's code in lower case.",
    buckets: latencies.slice(0, 14),
  },

  leasehold_event_loop_delay: {
    kind: "histogram",
    unit: "seconds",
    labels: [],
    help: "How late timers ran. A lease that is renewed later than this allows is lost.",
    buckets: delays,
  },
  leasehold_gc_duration: {
    kind: "histogram",
    unit: "seconds",
    labels: ["kind"],
    help: "Pauses of the garbage collector.",
    buckets: delays,
  },
  process_resident_memory: {
    kind: "gauge",
    unit: "bytes",
    labels: [],
    help: "Resident memory of this process.",
  },
  leasehold_certificate_expiry_time: {
    kind: "gauge",
    unit: "seconds",
    labels: ["file"],
    help: "When the certificates of a file that this process uses expire, in seconds since 1970: of a chain the first, of authorities the last.",
  },
  process_cpu: {
    kind: "counter",
    unit: "seconds",
    labels: [],
    help: "Processor time that this process has taken.",
  },
  process_start_time: {
    kind: "gauge",
    unit: "seconds",
    labels: [],
    help: "When this process was started, in seconds since 1970.",
  },
} as const satisfies MetricDefinitions;

export type Catalogued = Recorder<typeof catalogue>;

/** The metric's name in both text formats, without `_total`. The unit is its last word. */
export function fullName(name: string, { unit }: Pick<MetricDefinition, "unit">): string {
  return unit === "" ? name : `${name}_${unit}`;
}
