import { describe, expect, test } from "vitest";
import * as broken from "../../../../test/support/broken-providers.js";
import { type Parts, virtualGround } from "../../../../test/support/virtual-ground.js";
import { duringFaults } from "../../../../test/planted/switches.js";
import type { Provider } from "../lease/provider.js";
import type { AcquireOptions, Lease, Leases } from "../lease/types.js";
import { conformanceCases, type ConformanceGround } from "./conformance.js";

/** The result of the suite's case with this name on the ground. */
async function verdict(name: string, ground: ConformanceGround): Promise<string> {
  const found = conformanceCases().find((each) => each.name === name);
  if (found === undefined) return "there is no such case";
  try {
    await found.run(ground);
    return "it conforms";
  } catch (error) {
    return String(error);
  } finally {
    await ground.close();
  }
}

describe("the suite catches a provider that", () => {
  const expiry = "a lease that is not renewed expires, and nobody gets the resource before that";
  const faults: [string, new (parts: Parts) => Provider, string, RegExp][] = [
    [
      "grants twice",
      broken.GrantsTwice,
      "at most one participant holds a resource",
      /held the resource at the same time/,
    ],
    [
      "lets tokens fall",
      broken.TokensGoBack,
      "every later tenure has a greater token",
      /tokens of successive/,
    ],
    [
      "gives every tenure the same token",
      broken.TokensStay,
      "every later tenure has a greater token",
      /tokens of successive/,
    ],
    [
      "never lets a lease expire",
      broken.NeverExpires,
      "a participant that was stopped finds its lease lost on its first check",
      /nobody got the resource/,
    ],
    ["overstates the remaining time", broken.RemainingLies, expiry, /while \d+ ms remained/],
    [
      "overstates the remaining time (at once)",
      broken.RemainingLies,
      "remaining() is at most the TTL and falls as time passes",
      /remaining\(\) went/,
    ],
    [
      "trusts a timer",
      broken.RemainingTrustsATimer,
      "a participant that was stopped finds its lease lost on its first check",
      /still trusted|from its successor/,
    ],
    [
      "ignores an abort",
      broken.IgnoresAbort,
      "a signal ends a wait soon, with its own reason",
      /abort of a wait did not end/,
    ],
    [
      "leaks aborted attempts",
      broken.LeavesBehindWhatWasAborted,
      "an aborted call leaves nothing behind",
      /after an aborted call did not happen/,
    ],
    [
      "renews nothing",
      broken.RenewsNothing,
      "a renewal extends the lease and keeps its token",
      /a renewal changed the remaining time/,
    ],
    ["fails to renew", broken.FailsToRenew, "a lease renews itself", /was lost after/],
    [
      "releases nothing",
      broken.ReleasesNothing,
      "a release frees the resource at once and ends the lease",
      /after a release did not happen/,
    ],
    [
      "releases any tenure",
      broken.ReleasesByName,
      "a participant that was stopped finds its lease lost on its first check",
      /from its successor/,
    ],
    ["forgets its waiters", broken.ForgetsWaiters, "a release lets a waiter in", /did not end|waited/],
    [
      "does not know the holder",
      broken.HolderIsNobody,
      "holder() says who holds a resource and when it is free",
      /is held did not happen/,
    ],
    [
      "lists every resource",
      broken.ListsEverything,
      "list() returns the held resources below a prefix, in order",
      /the list below list/,
    ],
    [
      "reports the last tenure's data with the next",
      broken.KeepsTheFirstData,
      "others read the data of a tenure, and never with another's token",
      /is another tenure's/,
    ],
    [
      "loses the data of a tenure",
      broken.LosesData,
      "others read the data of a tenure, and never with another's token",
      /with the data of its tenure did not happen/,
    ],
    [
      "does not state its assumptions",
      broken.GuaranteesNothing,
      "the guarantees can be read",
      /no assumption/,
    ],
  ];

  test.each(faults)("%s", async (_, Faulty, name, because) => {
    expect(
      await verdict(
        name,
        virtualGround((parts) => new Faulty(parts)),
      ),
    ).toMatch(because);
  });
});

function without(options: AcquireOptions, setting: keyof AcquireOptions): AcquireOptions {
  const rest = { ...options };
  delete rest[setting];
  return rest;
}

describe("the suite catches leases that", () => {
  type Change = (leases: Leases) => Partial<Leases>;
  const reentrant: Change = (leases) => {
    const held = new Map<string, Lease>();
    return {
      acquire: async (resource, options) => {
        const lease = held.get(resource) ?? (await leases.acquire(resource, options));
        held.set(resource, lease);
        return lease;
      },
    };
  };
  const withOptions =
    (change: (options: AcquireOptions) => AcquireOptions): Change =>
    (leases) => ({
      acquire: (resource, options = {}) => leases.acquire(resource, change(options)),
      tryAcquire: (resource, options = {}) => leases.tryAcquire(resource, change(options)),
    });
  const faults: [string, Change, string, RegExp][] = [
    ["are re-entrant", reentrant, "a lease is not re-entrant", /success instead of TIMEOUT/],
    [
      "serve the last caller first",
      (leases) => {
        const stack: (() => void)[] = [];
        return {
          acquire: async (resource, options) => {
            await new Promise<void>((resolve) => {
              stack.push(resolve);
              queueMicrotask(() => stack.pop()?.());
            });
            return leases.acquire(resource, options);
          },
        };
      },
      "callers of one participant are served first in, first out, one at a time",
      /served in the order 3, 2, 1, 0/,
    ],
    [
      "ignore the wait",
      withOptions((options) => without(options, "wait")),
      "wait: 0 does not wait (LEASE_HELD)",
      /TIMEOUT instead of LEASE_HELD|did not end/,
    ],
    [
      "wait too short",
      withOptions((options) => ({ ...options, wait: 1 })),
      "a wait ends at its deadline with TIMEOUT",
      /long before its deadline/,
    ],
    [
      "wait for ever",
      withOptions((options) => ({ ...options, wait: Infinity })),
      "a wait ends at its deadline with TIMEOUT",
      /did not end/,
    ],
    [
      "ignore the signal",
      withOptions((options) => without(options, "signal")),
      "a signal that has already aborted ends the call",
      /ended with success/,
    ],
    [
      "take any name",
      (leases) => ({
        acquire: (resource, options) =>
          leases.acquire(`x${resource.slice(0, 9)}`.replace(/\W/gu, "-"), options),
      }),
      "bad names are refused (INVALID_NAME)",
      /instead of INVALID_NAME/,
    ],
    [
      "take any duration",
      withOptions(() => ({})),
      "bad durations are refused (INVALID_DURATION)",
      /instead of INVALID_DURATION/,
    ],
    [
      "take any TTL",
      withOptions(() => ({})),
      "a TTL outside the guaranteed range is refused (TTL_OUT_OF_RANGE)",
      /instead of TTL_OUT_OF_RANGE/,
    ],
    [
      "do not renew by themselves",
      withOptions((options) => ({ ...options, autoRenew: false })),
      "a lease renews itself",
      /was lost after/,
    ],
    [
      "renew leases that should expire",
      withOptions((options) => ({ ...options, autoRenew: true })),
      "a loss is noticed: the signal aborts, and the lease stays lost",
      /abort of the signal did not end/,
    ],
    [
      "do not close",
      () => ({ close: async () => undefined }),
      "close releases all leases and ends all waits with CLOSED",
      /did not end/,
    ],
    [
      "lead without a lease",
      (leases) => ({
        lead: async (resource, work) => work(await leases.acquire(`${resource}/${leases.self}`)),
      }),
      "lead() passes leadership on, one leader at a time",
      /two leaders/,
    ],
    [
      "lead on after an error",
      (leases) => ({
        lead: (resource, work, options) =>
          leases.lead(resource, (lease) => work(lease).catch(() => undefined as never), options),
      }),
      "lead() rethrows the work's error, and steps down when its signal aborts",
      /ended with success/,
    ],
  ];

  test.each(faults)("%s", async (_, change, name, because) => {
    const wrap = (leases: Leases) => {
      const changed = change(leases);
      return new Proxy(leases, {
        get: (target, key) => {
          const value: unknown = Reflect.get(changed, key) ?? Reflect.get(target, key);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    };
    expect(
      await verdict(
        name,
        virtualGround((parts) => new broken.Base(parts), wrap),
      ),
    ).toMatch(because);
  });
});

test("the suite catches a waist that forgets a lease for which nobody waits", async () => {
  const name = "callers of one participant that try, race and give up exclude each other";
  const found = await duringFaults({ restingLeaseIsForgotten: true }, () =>
    verdict(
      name,
      virtualGround((parts) => new broken.Base(parts)),
    ),
  );
  expect(found).toMatch(/two callers held/);
});
