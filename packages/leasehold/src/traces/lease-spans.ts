import { LeaseholdError, type LossReason } from "../lease/errors.js";
import { outcomeOf } from "../lease/manager/announced-call.js";
import type { LeaseManager } from "../lease/manager/lease-manager.js";
import type { AcquireSpec } from "../lease/manager/acquire-spec.js";
import type { LeaseTracing } from "../lease/manager/tracing.js";
import type { Lease } from "../lease/types.js";
import { AcquireSpan } from "./acquire-span.js";
import { dataNaming } from "./traceparent.js";
import type { SpanContextLike, SpanLike, TracerLike } from "./types.js";

const errorStatus = 2;

/** Messages in a span are truncated to this length. */
const messageCharactersMax = 256;

/** The trace of the call that acquired a lease. */
interface Origin {
  readonly span: SpanContextLike;
  /**
   * Runs a function in the context of the call, so that a span of the lease is a child of the span that was
   * active there.
   */
  readonly run: <R>(start: () => R) => R;
}

/** Creates spans for one participant's leases. */
export class LeaseSpans implements LeaseTracing {
  readonly #leases: LeaseManager;
  readonly #tracer: TracerLike;
  readonly #origins = new WeakMap<Lease, Origin>();
  /** Leases that were not renewed in time. */
  readonly #late = new Map<Lease, SpanLike>();

  constructor(leases: LeaseManager, tracer: TracerLike) {
    this.#leases = leases;
    this.#tracer = tracer;
  }

  call<T extends Lease | undefined>(spec: AcquireSpec, run: (spec: AcquireSpec) => Promise<T>): Promise<T> {
    const { guarantees, world } = this.#leases;
    const inCall = world.hooks?.snapshot() ?? ((start) => start());
    const attributes = { "leasehold.resource": spec.resource, "leasehold.ground": guarantees.ground };
    return this.#tracer.startActiveSpan("leasehold.acquire", { attributes }, async (span) => {
      if (!span.isRecording()) return run(spec).finally(() => span.end());
      const origin = { span: span.spanContext(), run: inCall };
      const trace = new AcquireSpan(span, {
        spanOn: (resource) => this.#spanOn(resource),
        dataOf: async (resource, timeout) => (await this.#leases.holder(resource, { timeout })).data,
        granted: (lease) => void this.#origins.set(lease, origin),
      });
      const data = spec.data ?? (guarantees.data ? dataNaming(origin.span) : undefined);
      try {
        const lease = await run({ ...spec, data, trace });
        span.setAttribute("leasehold.outcome", lease === undefined ? "held" : "acquired");
        if (lease !== undefined) span.setAttribute("leasehold.token", lease.token.toString());
        return lease;
      } catch (error) {
        const outcome = outcomeOf(error);
        span.setAttribute("leasehold.outcome", outcome.toLowerCase());
        if (outcome !== "aborted") fail(span, error);
        throw error;
      } finally {
        trace.end();
      }
    });
  }

  work<T>(name: "using" | "lead", resource: string | undefined, run: () => Promise<T>): Promise<T> {
    const attributes = resource === undefined ? {} : { "leasehold.resource": resource };
    return this.#tracer.startActiveSpan(`leasehold.${name}`, { attributes }, async (span) => {
      try {
        return await run();
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
  }

  late(lease: Lease, remainingMs: number, error: unknown): void {
    const origin = this.#origins.get(lease);
    if (origin === undefined) return;
    const attributes = { ...attributesOf(lease), "leasehold.remaining_ms": Math.round(remainingMs) };
    const links = [{ context: origin.span }];
    const span = origin.run(() => this.#tracer.startSpan("leasehold.renew", { attributes, links }));
    if (error instanceof LeaseholdError) span.addEvent("failed", { "error.type": error.code });
    this.#late.set(lease, span);
  }

  inTime(lease: Lease): void {
    this.#endLate(lease, "renewed");
  }

  ended(
    lease: Lease,
    reason: LossReason,
    takeBack: () => Promise<void> | undefined,
  ): Promise<void> | undefined {
    this.#endLate(lease, reason);
    const origin = this.#origins.get(lease);
    const name = ends[reason];
    if (origin === undefined || name === undefined) return takeBack();
    const options = { attributes: attributesOf(lease), links: [{ context: origin.span }] };
    return this.#tracer.startActiveSpan(name, options, (span) => {
      const given = takeBack();
      if (given === undefined) span.end();
      return given?.finally(() => span.end());
    });
  }

  /** Otherwise nobody would end the open spans. */
  stop(): void {
    for (const span of this.#late.values()) span.end();
    this.#late.clear();
  }

  #spanOn(resource: string): SpanContextLike | undefined {
    const lease = this.#leases.leaseOn(resource);
    return lease && this.#origins.get(lease)?.span;
  }

  #endLate(lease: Lease, outcome: "renewed" | LossReason): void {
    const span = this.#late.get(lease);
    if (span === undefined) return;
    this.#late.delete(lease);
    span.setAttribute("leasehold.outcome", outcome);
    if (outcome !== "renewed" && ends[outcome] === undefined) {
      span.setAttribute("error.type", "LEASE_LOST");
      span.setStatus({ code: errorStatus });
    }
    span.end();
  }
}

/** The spans for lease ends that are not losses. */
const ends: { readonly [Reason in LossReason]?: string } = {
  released: "leasehold.release",
  closed: "leasehold.release",
  detached: "leasehold.detach",
};

function attributesOf({ resource, token }: Lease): Record<string, string> {
  return { "leasehold.resource": resource, "leasehold.token": token.toString() };
}

/** For the program's own errors only the name is recorded: their text may be secret. */
function fail(span: SpanLike, error: unknown): void {
  const isOurs = error instanceof LeaseholdError;
  const name = error instanceof Error ? error.name : typeof error;
  span.setAttribute("error.type", isOurs ? error.code : name.slice(0, messageCharactersMax));
  const message = isOurs ? { message: error.message.slice(0, messageCharactersMax) } : {};
  span.setStatus({ code: errorStatus, ...message });
}
