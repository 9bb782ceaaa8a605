import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ChangingCluster } from "../../../../../test/support/changing-cluster.js";
import { effort } from "../../../../../test/support/effort.js";
import type { FakeNet } from "../../../../../test/support/fake-net.js";
import { duringFaults, type Fault } from "../../../../../test/planted/switches.js";
import { LeaseholdError, LeaseLostError } from "../../lease/errors.js";
import { LeaseManager } from "../../lease/manager/lease-manager.js";
import type { Lease } from "../../lease/types.js";
import type { FleaseNode } from "./flease-node.js";

/**
 * Several callers, two in each process, make random public calls while members come, go and change ids at one
 * address. The product's own members, clients and connections run in virtual time.
 */

const fake = vi.hoisted(() => ({ net: undefined as unknown }));
vi.mock("node:net", async (original) => ({
  ...(await original<object>()),
  connect: (options: never) => (fake.net as FakeNet).connect(options),
  createServer: (accept: never) => (fake.net as FakeNet).createServer(accept),
}));
const use = (net: FakeNet) => void (fake.net = net);

const names = ["x", "y", "z/~rw"];

/** Timeout of a call, ms; each ends within twice that, whatever happens. */
const waitMsMax = 3_000;
const callMsMax = 2 * waitMsMax + 10_000;

/** The errors that calls may get while members change. */
const usual = [
  "LEASE_HELD",
  "TIMEOUT",
  "NO_QUORUM",
  "UNREACHABLE",
  "LEASE_LOST",
  "LEASE_BROKEN",
  "CLOSED",
  "BUSY",
];

interface Held {
  readonly lease: Lease;
  readonly isShared: boolean;
  /** Its caller no longer wants it. */
  mayBeLost: boolean;
}

class Calls {
  readonly violations: string[] = [];
  readonly counters = { granted: 0, calls: 0, lost: 0, aborted: 0, closed: 0 };
  readonly #cluster: ChangingCluster;
  readonly #held = new Set<Held>();
  readonly #newest = new Map<string, bigint>();
  readonly #pending = new Map<string, number>();
  #isOver = false;
  #callers = 0;

  constructor(cluster: ChangingCluster) {
    this.#cluster = cluster;
    this.#look();
  }

  get #nowMs(): number {
    return this.#cluster.world.clock.monotonicMs();
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#cluster.world.timers.after(ms, resolve));
  }

  #next(bound: number): number {
    return Math.floor(this.#cluster.world.random.next() * bound);
  }

  /** At any time there is one writer, or there are only readers. */
  #look(): void {
    for (const name of names) {
      const live = [...this.#held].filter(({ lease }) => lease.resource === name && lease.remaining() > 0);
      if (live.length > 1 && live.some(({ isShared }) => !isShared))
        this.violations.push(`${name} is held by ${live.map(({ lease }) => lease.holder).join(" and ")}`);
    }
    for (const [call, sinceMs] of this.#pending) {
      if (this.#nowMs - sinceMs <= callMsMax) continue;
      this.violations.push(`${call} does not end`);
      this.#pending.delete(call);
    }
    if (!this.#isOver) this.#cluster.world.timers.after(10, () => this.#look());
  }

  #granted(lease: Lease, isShared: boolean): Held {
    this.counters.granted += 1;
    // Readers' tokens rise only relative to writers' tokens.
    const newest = this.#newest.get(lease.resource) ?? 0n;
    if (!isShared && lease.token <= newest)
      this.violations.push(`${lease.resource}: ${lease.token} after ${newest}`);
    if (lease.token > newest) this.#newest.set(lease.resource, lease.token);
    const held: Held = { lease, isShared, mayBeLost: false };
    this.#held.add(held);
    lease.signal.addEventListener("abort", () => {
      this.#held.delete(held);
      const { reason } = lease.signal as { reason: unknown };
      // Callers release and bar leases; these are the reasons given.
      if (reason instanceof LeaseLostError && ["released", "broken"].includes(reason.reason)) return;
      this.counters.lost += 1;
      if (!held.mayBeLost) this.violations.push(`${lease.resource} is lost: ${String(reason)}`);
    });
    return held;
  }

  /** A call ends with a result or with a documented error. */
  async #call<T>(what: string, run: () => Promise<T>, isAborted = () => false): Promise<T | undefined> {
    const call = `${what} #${(this.counters.calls += 1)}`;
    this.#pending.set(call, this.#nowMs);
    try {
      return await run();
    } catch (error) {
      const isUsual = error instanceof LeaseholdError && usual.includes(error.code);
      if (isAborted()) this.counters.aborted += 1;
      else if (!isUsual) this.violations.push(`${call}: ${String(error)}`);
      return undefined;
    } finally {
      this.#pending.delete(call);
    }
  }

  async #acquire(leases: LeaseManager): Promise<void> {
    const resource = names[this.#next(names.length)]!;
    const isShared = resource.endsWith("/~rw") && this.#next(2) === 0;
    const mode = isShared ? ({ mode: "shared" } as const) : {};
    const aborting = new AbortController();
    const { signal } = aborting;
    if (this.#next(4) === 0)
      this.#cluster.world.timers.after(this.#next(waitMsMax), () => aborting.abort(new Error("given up")));
    const options = { ...mode, signal };
    const isTry = this.#next(3) === 0;
    const lease = await this.#call(
      `acquire ${resource}`,
      () =>
        isTry
          ? leases.tryAcquire(resource, options)
          : leases.acquire(resource, { ...options, wait: `${1 + this.#next(waitMsMax)}ms` }),
      () => signal.aborted,
    );
    if (lease === undefined) return;
    const held = this.#granted(lease, isShared);
    await this.#sleep(this.#next(4_000));
    if (this.#next(4) === 0) await this.#call("renew", () => lease.renew());
    if (!isShared && this.#next(4) === 0) {
      held.mayBeLost = true;
      await this.#call("detach", () => lease.detach());
    }
    await lease.release();
    this.#held.delete(held);
  }

  async #ask(leases: LeaseManager): Promise<void> {
    const name = names[this.#next(2)]!;
    const kind = this.#next(6);
    if (kind === 0) await this.#call("holder", () => leases.holder(name));
    else if (kind === 1) await this.#call("list", () => leases.list());
    else if (kind === 2) await this.#call("explain", () => leases.explain(name));
    else if (kind === 3) await this.#call("requestRelease", () => leases.requestRelease(name));
    else if (kind === 4 && this.#next(3) === 0) {
      await this.#call("break", () => leases.break(name));
    } else {
      const watching = leases.watch(name);
      this.#cluster.world.timers.after(this.#next(2_000), () => void watching.return?.());
      await this.#call("watch", () => watching.next());
    }
  }

  /** Two callers of one process, which is sometimes closed and reopened. */
  async callers(open: () => Promise<FleaseNode | undefined>): Promise<void> {
    this.#callers += 1;
    while (!this.#isOver) {
      const node = await open();
      if (node === undefined) continue;
      const leases = new LeaseManager(node.provider, this.#cluster.world);
      const untilMs = this.#nowMs + 5_000 + this.#next(20_000);
      const goesOn = () => !this.#isOver && this.#nowMs < untilMs;
      const one = async () => {
        while (goesOn()) {
          await this.#sleep(this.#next(400));
          const kind = this.#next(6);
          await (kind === 0 ? this.#ask(leases) : this.#acquire(leases));
        }
      };
      await Promise.all([one(), one()]);
      await this.#call("close", () => leases.close());
      void node.close();
      this.counters.closed += 1;
    }
    this.#callers -= 1;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    if (!(await this.#cluster.until(() => this.#callers === 0, 60_000)))
      this.violations.push(`calls go on: ${[...this.#pending.keys()].join(", ")}`);
  }
}

/** The first violation that a seed finds; undefined if there is none. */
async function search(
  seeds: number,
  first = 1,
): Promise<{ found: string | undefined; counters: Calls["counters"] }> {
  const total = { granted: 0, calls: 0, lost: 0, aborted: 0, closed: 0 };
  for (let seed = first; seed < first + seeds; seed += 1) {
    const cluster = new ChangingCluster(use, seed, 3, 3, ["a", "b", "c", "d", "e", "f"]);
    await cluster.begin();
    const calls = new Calls(cluster);
    // A member that stays: changes are requested from it.
    cluster.startClient("stays");
    for (const name of ["p", "q", "r"]) void calls.callers(() => cluster.openClient(name));
    let changed = true;
    for (let changes = 0; changes < 4 && changed && calls.violations.length === 0; changes += 1) {
      await cluster.until(() => false, 2_000);
      const removed = cluster.pick(cluster.present);
      const kind =
        cluster.present.length <= 2
          ? 0
          : cluster.present.length >= 4
            ? 1
            : Math.floor(cluster.world.random.next() * 3);
      const add = kind === 1 ? undefined : cluster.spare();
      if (add !== undefined) cluster.startMember(add, cluster.freePort());
      const by = cluster.pick(cluster.present.filter((id) => id !== removed));
      changed = await cluster.change(by, {
        ...(add !== undefined && { add }),
        ...(kind !== 0 && { remove: removed }),
      });
    }
    await calls.end();
    cluster.end();
    const [violation = changed ? undefined : "a change does not end"] = calls.violations;
    if (violation !== undefined) return { found: `seed ${seed}: ${violation}`, counters: total };
    for (const [name, count] of Object.entries(calls.counters)) total[name as keyof typeof total] += count;
  }
  return { found: undefined, counters: total };
}

// The timer that keeps a process alive while its transport is open.
beforeEach(() => void vi.spyOn(globalThis, "setInterval").mockImplementation((() => undefined) as never));
afterEach(() => void vi.restoreAllMocks());

test("whatever is called while members change, exclusion holds, tokens rise, and each call ends", async () => {
  const { found, counters } = await search(4 * effort);
  expect(found).toBeUndefined();
  if (effort > 1) process.stdout.write(`${JSON.stringify(counters)}\n`);
  expect(counters.granted).toBeGreaterThan(100);
  expect(counters.aborted).toBeGreaterThan(10);
  expect(counters.closed).toBeGreaterThan(10);
}, 600_000);

describe("random calls find", () => {
  test.each<[Fault, RegExp]>([
    ["viewChangeForgets", /is held by/],
    ["restingLeaseIsForgotten", /is lost/],
    ["abandonedRenewalReleased", /is held by/],
    ["writerSkipsSlots", /is held by/],
  ])(
    "the mistake %s",
    async (fault, what) => {
      const { found } = await duringFaults({ [fault]: true }, () => search(20));
      expect(found).toMatch(what);
    },
    600_000,
  );
});
