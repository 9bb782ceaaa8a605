import type { Grant, Provider } from "../../packages/leasehold/src/lease/provider.js";
import type { Lease, Leases } from "../../packages/leasehold/src/lease/types.js";

// Mistakes of the waist, made from outside: the product has no switches for them.

/** A lease seems to be held as long as nobody gives it back, whatever has become of its grant. */
export function neverRunsOut(provider: Provider): Provider {
  return attempting(provider, async (request, cancellation) => {
    const outcome = await provider.attempt(request, cancellation);
    if (outcome.kind !== "granted") return outcome;
    const { grant } = outcome;
    return { kind: "granted", grant: but(grant, { remainingMs: () => Math.max(1, grant.remainingMs()) }) };
  });
}

/** Nothing is ever renewed. */
export function neverRenews(provider: Provider): Provider {
  return but(provider, { renew: () => Promise.resolve(false) });
}

/** An acquisition that its caller has given up never ends, and keeps the turn from those who wait behind it. */
export function abortKeepsTheTurn(provider: Provider): Provider {
  return attempting(provider, async (request, cancellation) => {
    const outcome = await provider.attempt(request, cancellation);
    return cancellation?.cancelled === true ? new Promise(() => {}) : outcome;
  });
}

/** What was granted to a caller that had given up in that moment is not given back. */
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

/** Nobody who waits is told of a release. */
export function hintsAreLost(provider: Provider): Provider {
  return but(provider, {
    attach: (events) =>
      provider.attach({ lost: (grant, error) => events.lost(grant, error), hint: () => true }),
  });
}

/** What keeps a lease alive takes another one when it has lapsed, and the program goes on by the old token. */
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

/** A program is given the token of the tenure before. */
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

/** A campaign begins anew while the work of the former tenure goes on. */
export function leadsBeforeTheWorkHasEnded(leases: Leases): Leases {
  const untilAborted = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  return but(leases, {
    lead: (resource, work, options) =>
      leases.lead(resource, (lease) => Promise.race([work(lease), untilAborted(lease.signal)]), options),
  });
}

/** The same, whichever way the waist asks for an attempt. */
function attempting(provider: Provider, attempt: Provider["attempt"]): Provider {
  const begin: Provider["begin"] = (request, taker) =>
    void attempt(request, taker).then((outcome) => taker.settled(outcome));
  return but(provider, { attempt, begin });
}

/** The same as `whole`, but for some of its methods. */
function but<T extends object>(whole: T, mistaken: Partial<T>): T {
  return new Proxy(whole, {
    get: (_target, name) => {
      if (name in mistaken) return Reflect.get(mistaken, name);
      const value: unknown = Reflect.get(whole, name, whole);
      return typeof value === "function" ? value.bind(whole) : value;
    },
  });
}
