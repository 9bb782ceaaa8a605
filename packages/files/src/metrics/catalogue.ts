/** The metrics of a file node, in addition to those of `leasehold/metrics`. */
import type { MetricDefinitions } from "leasehold/metrics";

const latencies = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Names have neither a unit nor `_total`: the formats add them. */
export const filesCatalogue = {
  leasehold_files_request_duration: {
    kind: "histogram",
    unit: "seconds",
    labels: ["api", "method", "outcome"],
    help: "Requests of clients until the answer's end: ok, cut (off by either side), an error's code in lower case, or the status.",
    buckets: latencies,
  },
  leasehold_files_requests_open: { kind: "gauge", unit: "", labels: ["api"], help: "Requests in progress." },
  leasehold_files_received: {
    kind: "counter",
    unit: "bytes",
    labels: ["api"],
    help: "Bytes of requests, with their headers.",
  },
  leasehold_files_sent: {
    kind: "counter",
    unit: "bytes",
    labels: ["api"],
    help: "Bytes of answers, with their headers.",
  },
  leasehold_files_uploads_open: {
    kind: "gauge",
    unit: "",
    labels: [],
    help: "Contents that are being written by this node's clients.",
  },
  leasehold_files_state: {
    kind: "gauge",
    unit: "",
    labels: ["state"],
    help: "1 for the state of this node, 0 for the others.",
  },
  leasehold_files_majority: {
    kind: "gauge",
    unit: "",
    labels: [],
    help: "1 while this node and those that answer it are a majority of those that keep the names. At 0 nothing can be written.",
  },
  leasehold_files_peer_reachable: {
    kind: "gauge",
    unit: "",
    labels: ["peer"],
    help: "1 if that node answered last.",
  },
  leasehold_files_peer_behind: {
    kind: "gauge",
    unit: "",
    labels: ["peer"],
    help: "Files whose primary is here and whose copy at that node is incomplete.",
  },
  leasehold_files_rebuilding_left: {
    kind: "gauge",
    unit: "",
    labels: [],
    help: "Files that this node still has to copy: its disk lost them, or they are placed on it.",
  },
  leasehold_files_primaries: {
    kind: "gauge",
    unit: "",
    labels: [],
    help: "Files whose primary, by a lease, is this node.",
  },
  leasehold_files_events: {
    kind: "counter",
    unit: "",
    labels: ["event"],
    help: "Reads, writes, forwarded (to a primary elsewhere), resets, and blocks scrubbed, damaged and repaired; contents collected and placed.",
  },
  leasehold_files_disk_sync_duration: {
    kind: "histogram",
    unit: "seconds",
    labels: [],
    help: "Time that a write of the index or of data took to be on disk.",
    buckets: latencies.slice(0, 14),
  },
  leasehold_files_disk_free: {
    kind: "gauge",
    unit: "bytes",
    labels: [],
    help: "Free space of the disk. At 64 MiB clients' data is refused.",
  },
} as const satisfies MetricDefinitions;
