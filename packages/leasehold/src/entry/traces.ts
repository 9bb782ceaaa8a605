/** Traces: `leasehold/traces`. OpenTelemetry spans of a program's leases. `docs/metrics.md` lists them. */
import { LeaseholdError } from "../lease/errors.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import type { Leases } from "../lease/types.js";
import { LeaseSpans } from "../traces/lease-spans.js";
import type { TracerLike } from "../traces/types.js";

export type { TracerLike } from "../traces/types.js";

/**
 * Creates spans for the leases that a participant acquires from now on: `leasehold.acquire` with the event
 * `wait`, `leasehold.using`, `leasehold.lead`, `leasehold.release`, and `leasehold.renew` for a lease that
 * was not renewed in time. A span is a child of the span that is active when the call begins. The work of
 * `using` and `lead` runs inside their spans.
 *
 * A waiting caller's span is linked to the spans that acquired the lease, at most 8. For these links, a
 * sampled tenure without `data` gets the data `{ traceparent }`, in W3C's format; everybody who can read the
 * lease can read it. A program that sets `data` itself may add a `traceparent`.
 *
 * @param tracer `trace.getTracer("my-program")` of `@opentelemetry/api`.
 * @returns a function that ends it
 * @throws LeaseholdError `INVALID_CONFIG` if the leases are traced already, or were not created by this
 *   package.
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
