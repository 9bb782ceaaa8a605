/**
 * Traces: `leasehold/traces`. What happens to a program's leases, as spans of OpenTelemetry.
 * `docs/metrics.md` lists them.
 */
import { LeaseholdError } from "../lease/errors.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Leases } from "../lease/types.js";
import { LeaseSpans } from "../traces/lease-spans.js";
import type { TracerLike } from "../traces/types.js";

export type { TracerLike } from "../traces/types.js";

/**
 * Makes spans of the leases that a participant acquires from now on: `leasehold.acquire` with the event
 * `wait`, `leasehold.using`, `leasehold.lead`, `leasehold.release`, and `leasehold.renew` for a lease that
 * was not renewed in time. A span is a child of the one that is active where the call begins; the work of
 * `using` and `lead` runs inside theirs.
 *
 * A caller that waits is linked to the span that acquired the lease, up to 8. For that a sampled tenure
 * without `data` of its own has the data `{ traceparent }`, in W3C's form, which everybody can read who can
 * read the lease. A program with data of its own may put a `traceparent` into it.
 *
 * @param tracer `trace.getTracer("my-program")` of `@opentelemetry/api`.
 * @returns a function that ends it
 * @throws LeaseholdError `INVALID_CONFIG` when they are traced already, or were not made by this package.
 * @example
 * ```ts
 * import { open } from "leasehold";
 * import { traceLeases } from "leasehold/traces";
 * import { trace } from "@opentelemetry/api";
 *
 * const leases = await open("memory:traced");
 * const stop = traceLeases(leases, trace.getTracer("reports"));
 * await leases.using("reports/nightly", () => trace.getActiveSpan()?.setAttribute("reports", 12));
 * stop();
 * await leases.close();
 * ```
 */
export function traceLeases(leases: Leases, tracer: TracerLike): () => void {
  if (!(leases instanceof LeaseManager))
    throw new LeaseholdError("INVALID_CONFIG", "only leases that this package has opened can be traced");
  const spans = new LeaseSpans(leases, tracer);
  leases.traceWith(spans);
  return () => {
    if (leases.tracing === spans) leases.traceWith(undefined);
    spans.stop();
  };
}
