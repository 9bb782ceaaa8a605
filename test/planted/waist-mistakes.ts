import type { Grant, Provider } from "../../packages/leasehold/src/lease/provider.js";
import type { Lease, Leases } from "../../packages/leasehold/src/lease/types.js";

// Mistakes in the waist are made from outside, since the product has no switches for them.

/** A lease appears held until it is released, whatever has become of its grant. */
export function neverRunsOut(provider: Provider): Provider {
  return attempting(provider, async (request, cancellation) => {
    const outcome = await provider.attempt(request, cancellation);
    if (outcome.kind !== "granted") return outcome;
    const { grant } = outcome;
    return { kind: "granted", grant: but(grant, { remainingMs: () => Math.max(1, grant.remainingMs()) }) };
  });
}

/** No lease is ever renewed. */
export function neverRenews(provider: Provider): Provider {
  return but(provider, { renew: () => Promise.resolve(false) });
}

/** An acquisition aborted by its caller never ends, and blocks the callers that wait behind it. */
export function abortKeepsTheTurn(provider: Provider): Provider {
  return attempting(provider, async (request, cancellation) => {
    const outcome = await provider.attempt(request, cancellation);
    return cancellation?.cancelled === true ? new Promise(() => {}) : outcome;
  });
}

/** A lease granted to a caller that aborted at that moment is not released. */
export function lateGrantIsKept(provider: Provider): Provider {
  const unwanted = new Set<Grant>();
  const attempt: Provider["attempt"] = async (request, cancellation) => {
    const outcome = await provider.attempt(request, cancellation);
    if (outcome.kind === "granted" && cancellation?.cancelled === true) unwanted.add(outcome.grant);
    return outcome;
  };
  const release: Provider["release"] = (grant) =>
    unwanted.delete(grant) ? Promise.resolve() : provider.release(grant);
  return but(attempting(provider, attempt), { release });
}

/** Waiters are not notified of a release. */
export function hintsAreLost(provider: Provider): Provider {
  return but(provider, {
    attach: (events) =>
      provider.attach({ lost: (grant, error) => events.lost(grant, error), hint: () => true }),
  });
}

/**
 * After a lease has lapsed, a new one is acquired in its place, and the program goes on with the old token.
 */
export function lapsedLeaseIsReopened(leases: Leases): Leases {
  return but(leases, {
    acquire: async (resource, options) => {
      const first = await leases.acquire(resource, options);
      let present: Lease = first;
      let released = false;
      const reopen = async () => {
        const next = await leases.tryAcquire(resource).catch(() => undefined);
        if (next !== undefined) present = next;
      };
      return but(first, {
        remaining: () => {
          const leftMs = present.remaining();
          if (leftMs === 0 && !released) void reopen();
          return leftMs;
        },
        release: () => {
          released = true;
          return present.release();
        },
      });
    },
  });
}

/** A program gets the token of the tenure before. */
export function tokensLagBehind(leases: Leases): Leases {
  let before: bigint | undefined;
  return but(leases, {
    acquire: async (resource, options) => {
      const lease = await leases.acquire(resource, options);
      const token = before ?? lease.token;
      before = lease.token;
      return but(lease, { token });
    },
  });
}

/** A campaign begins again while the work of the former tenure goes on. */
export function leadsBeforeTheWorkHasEnded(leases: Leases): Leases {
  const untilAborted = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  return but(leases, {
    lead: (resource, work, options) =>
      leases.lead(resource, (lease) => Promise.race([work(lease), untilAborted(lease.signal)]), options),
  });
}

/** Replaces `attempt` for both ways in which the waist calls it. */
function attempting(provider: Provider, attempt: Provider["attempt"]): Provider {
  const begin: Provider["begin"] = (request, taker) =>
    void attempt(request, taker).then((outcome) => taker.settled(outcome));
  return but(provider, { attempt, begin });
}

/** The same as `whole`, except for some of its methods. */
function but<T extends object>(whole: T, mistaken: Partial<T>): T {
  return new Proxy(whole, {
    get: (_target, name) => {
      if (name in mistaken) return Reflect.get(mistaken, name);
      const value: unknown = Reflect.get(whole, name, whole);
      return typeof value === "function" ? value.bind(whole) : value;
    },
  });
}
