import type { Clock } from "../common/ports.js";
import type { Lease, Leases } from "../lease/types.js";
import { eventLog } from "../runtime/log-events.js";
import type { Logger } from "../runtime/logger.js";

/** Outcomes of calls that are not faults. */
const usual: ReadonlySet<string> = new Set(["acquired", "held", "aborted", "LEASE_HELD"]);

/** As `logLeases` of `leasehold/logs`. */
export function logLeases(leases: Leases, logger: Logger, clock: Clock): () => void {
  const events = eventLog(logger, () => clock.monotonicMs());
  const since = new WeakMap<Lease, number>();
  const about = ({ resource, holder, token }: Lease) => ({ resource, holder, token: String(token) });
  const stops = [
    leases.on("acquired", ({ lease }) => {
      since.set(lease, clock.monotonicMs());
      events.log("lease-acquired", `acquired ${lease.resource}, token ${lease.token}`, about(lease));
    }),
    leases.on("released", ({ lease }) => {
      const heldMs = Math.round(clock.monotonicMs() - (since.get(lease) ?? Number.NaN));
      const fields = { ...about(lease), heldMs: Number.isNaN(heldMs) ? undefined : heldMs };
      events.log("lease-released", `released ${lease.resource}, token ${lease.token}`, fields);
    }),
    leases.on("renewal-late", ({ lease, remainingMs, error }) => {
      const left = Math.round(remainingMs);
      const why = error instanceof Error ? error.message : undefined;
      const text = `${lease.resource} was not renewed in time: ${left} ms are left${why === undefined ? "" : `; ${why}`}`;
      events.log("lease-late", text, { ...about(lease), remainingMs: left, error: why });
    }),
    leases.on("lost", ({ lease, error }) => {
      const text = `${lease.resource}, token ${lease.token}, was lost: ${error.message}`;
      events.log("lease-lost", text, { ...about(lease), reason: error.reason });
    }),
    leases.on("settled", ({ resource, outcome, waitedMs }) => {
      if (usual.has(outcome)) return;
      const waited = Math.round(waitedMs);
      const text = `${resource} was not acquired after ${waited} ms: ${outcome}`;
      events.limited("lease-refused", outcome, text, { resource, outcome, waitedMs: waited });
    }),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
