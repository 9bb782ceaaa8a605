/**
 * Leasehold: exclusive, time-bounded ownership of a named resource in a distributed system. This file is the
 * composition root, the one place that knows every ground and the real host.
 */
import { isCoreUrl } from "./etcd/address.js";
import { openCoreLeases } from "./etcd/open.js";
import { openFleaseClient } from "./flease/tcp/client.js";
import { askClusterStatus } from "./flease/tcp/cluster-status.js";
import { startFleaseMember } from "./flease/tcp/member.js";
import type { GuardedCells } from "./delta/guarded/guarded.js";
import type { Member, MemberOptions, MemberReport, OpenOptions } from "./runtime/types.js";
import { ObserverProvider } from "./flease/tcp/observer.js";
import { openInWorker } from "./flease/tcp/worker/worker-provider.js";
import { realWorld } from "./runtime/world.js";
import { LeaseholdError } from "./lease/errors.js";
import { parseDuration } from "./lease/duration.js";
import { LeaseManager } from "./lease/lease-manager.js";
import type { Leases } from "./lease/types.js";
import { isFarmUrl } from "./stores/farm-address.js";
import { openCells, openFarmLeases } from "./stores/farm-leases.js";
import { openMemory } from "./testing/memory-registry.js";

export type * from "./lease/types.js";
export type {
  Logger,
  Member,
  MemberOptions,
  MemberReport,
  MemberStatus,
  OpenOptions,
  PeerStatus,
  ReadyOptions,
  SecurityOptions,
  TlsFiles,
} from "./runtime/types.js";
export type { GuardedCells, GuardedDatum, GuardedLease } from "./delta/guarded/guarded.js";
export { errorCodes, LeaseholdError, LeaseLostError } from "./lease/errors.js";
export type { ErrorCode, LossReason } from "./lease/errors.js";

/** How long a program with `renewInWorker` may be busy before it counts as hung. */
const busyDefault = "5m";

/**
 * Opens the leases of a ground:
 *
 * - `flease://host:port`, one or more: a client of the members there. One address is enough, as the member
 *   tells the others; more are safer. Resolves when a majority is connected, or at the timeout if at least
 *   one is.
 * - `memory:name`: leases among the participants of this process, for tests.
 * - `delta+file:///mnt/a,/mnt/b,/mnt/c`, `delta+redis://h1,h2,h3`, `delta+s3://…`, `delta+postgres://…`,
 *   `delta+block:…`: Δ-leases on a majority of these stores; several addresses together are one farm
 *   (`docs/storage.md`). `flease+…`: Flease on such stores. `delta+memory:name` and `flease+memory:name` are
 *   three stores in this process's memory, for tests.
 * - `core://h1:2379,h2:2379,h3:2379`: leases of a consistent core that speaks etcd's v3 API:
 *   `leasehold core`, or an etcd (`docs/core.md`).
 *
 * The last argument may be the options. What the leases promise, and what that rests on, is in their
 * `guarantees`.
 *
 * @throws LeaseholdError `INVALID_URL`, `INVALID_DURATION`, `UNREACHABLE`, `CLUSTER_MISMATCH`,
 * `CONFIG_MISMATCH`, `VERSION_MISMATCH`, `INVALID_CONFIG` (credentials that cannot be used, options that have
 * no meaning for the ground), `UNAUTHENTICATED`, `PERMISSION_DENIED`, `NO_QUORUM`, `UNSUPPORTED` (a package
 * that the kind of store needs is not installed), `STORE_…`.
 * @example
 * ```ts
 * const leases = await open("flease://10.0.0.1:7400", "flease://10.0.0.2:7400");
 * const lease = await leases.acquire("reports/nightly");
 * try {
 *   lease.assertHeld(500);
 * } finally {
 *   await lease.release();
 *   await leases.close();
 * }
 * ```
 */
export async function open(...args: [...urls: string[], options: OpenOptions] | string[]): Promise<Leases> {
  const { urls, options } = split(args);
  const world = realWorld();
  if (urls.length === 1 && urls[0]!.startsWith("memory:")) {
    return openMemory(urls[0]!.slice("memory:".length), world, options.name);
  }
  if (urls.some(isCoreUrl)) return new LeaseManager(await openCoreLeases(urls, options, world), world);
  if (urls.some(isFarmUrl)) return new LeaseManager(await openFarmLeases(urls, options, world), world);
  const { renewInWorker = false } = options;
  if (renewInWorker !== false) {
    const busyMsMax = parseDuration(renewInWorker === true ? busyDefault : renewInWorker, "renewInWorker");
    return new LeaseManager(await openInWorker(fleaseAddresses(urls), options, world, busyMsMax), world);
  }
  const node = await openFleaseClient(fleaseAddresses(urls), options, world);
  return new LeaseManager(
    node.role === "observer" ? new ObserverProvider(node.provider) : node.provider,
    world,
  );
}

/**
 * Makes this process a member of a Flease cluster: it helps to decide for everybody, and takes leases of its
 * own through `member.leases`. Resolves when it listens. Its vote does not count during the recovery wait
 * (`ttlMax` · 1.22 with the default settings), as it may have forgotten what it promised before it was
 * started. It can take leases of its own at once if a majority of the members votes.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `INVALID_DURATION`, `INVALID_URL`.
 * @example
 * ```ts
 * const member = await startMember({
 *   id: "a",
 *   members: { a: "10.0.0.1:7400", b: "10.0.0.2:7400", c: "10.0.0.3:7400" },
 * });
 * await using lease = await member.leases.acquire("reports/nightly");
 * ```
 */
export function startMember(options: MemberOptions): Promise<Member> {
  return startFleaseMember(options);
}

/**
 * Asks every member of a Flease cluster how it is. One that does not answer is in the result, too, with the
 * reason.
 *
 * @throws LeaseholdError as {@link open}.
 * @example
 * ```ts
 * for (const report of await clusterStatus("flease://10.0.0.1:7400")) {
 *   console.log(report.id, report.reachable ? report.status.state : report.reason);
 * }
 * ```
 */
export function clusterStatus(
  ...args: [...urls: string[], options: OpenOptions] | string[]
): Promise<MemberReport[]> {
  const { urls, options } = split(args);
  return askClusterStatus(fleaseAddresses(urls), options, realWorld());
}

/**
 * Opens leases on one store whose records stand in one cell with the datum that they guard: each write of the
 * datum also renews the lease, and the store itself refuses the write of a former holder (`docs/storage.md`).
 * `url` is the address of one store that compares and sets: `delta+file:///mnt/a`, `delta+redis://…`,
 * `delta+postgres://…`, `delta+s3://…`, `delta+memory:name`.
 *
 * Rejects as {@link open}, with `UNSUPPORTED` for several stores or one that cannot compare and set.
 *
 * @example
 * ```ts
 * await using cells = await openGuardedCells("delta+memory:orders");
 * await using guarded = await cells.acquire("orders/next-number");
 * const number = Number(guarded.datum ?? 1);
 * await guarded.write(String(number + 1)); // one operation: writes the datum, renews the lease
 * ```
 */
export function openGuardedCells(url: string, options: OpenOptions = {}): Promise<GuardedCells> {
  return openCells(url, options, realWorld());
}

function split(args: readonly (string | OpenOptions)[]): { urls: string[]; options: OpenOptions } {
  const last = args.at(-1);
  const options = typeof last === "object" ? last : {};
  return { urls: args.filter((arg) => typeof arg === "string"), options };
}

function fleaseAddresses(urls: readonly string[]): string[] {
  if (urls.length === 0) throw new LeaseholdError("INVALID_URL", "at least one address is needed");
  return urls.map((url) => {
    const address = /^flease:\/\/([^/]+)\/?$/.exec(url)?.[1];
    if (address !== undefined) return address;
    if (isCoreUrl(url))
      throw new LeaseholdError(
        "UNSUPPORTED",
        `${url} is a core, which has no members to ask for their status`,
      );
    throw new LeaseholdError(
      "INVALID_URL",
      `${JSON.stringify(url)} is not an address of leases: it should be flease://host:port, delta+KIND:… for stores, core://host:port or, alone, memory:name`,
    );
  });
}
