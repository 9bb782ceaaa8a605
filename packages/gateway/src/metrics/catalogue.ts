/** The metrics of a gateway, in addition to those of `leasehold/metrics`. */
import type { MetricDefinitions } from "leasehold/metrics";

/** Names have no unit and no `_total`: the formats add them. */
export const gatewayCatalogue = {
  leasehold_gateway_request_duration: {
    kind: "histogram",
    unit: "seconds",
    labels: ["route", "outcome"],
    help: "Requests until the answer's end, waiting included: ok, waiting (202), refused (4xx), failed (5xx), or cut (off by either side, as a watch is).",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  },
  leasehold_gateway_refusals: {
    kind: "counter",
    unit: "",
    labels: ["reason"],
    help: "Requests that got an error: its code in lower case, or http_ and the status. Connections beyond the bound are connections.",
  },
  leasehold_gateway_sessions: { kind: "gauge", unit: "", labels: [], help: "Open sessions." },
  leasehold_gateway_sessions_ended: {
    kind: "counter",
    unit: "",
    labels: ["cause"],
    help: "Sessions that have ended: closed, expired (nothing was heard of the client), released (with the last lease of the call that opened it), unused (that call got none), or stopped (with the gateway).",
  },
  leasehold_gateway_watches: { kind: "gauge", unit: "", labels: [], help: "Clients that watch." },
  leasehold_gateway_quota_used: {
    kind: "gauge",
    unit: "ratio",
    labels: ["quota"],
    help: "Used share of each bound: connections, sessions, leases (waiting calls included), watches, and changes that wait for slow readers.",
  },
} as const satisfies MetricDefinitions;
