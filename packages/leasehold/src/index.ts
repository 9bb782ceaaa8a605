/**
 * Leasehold: exclusive, time-bounded ownership of a named resource in a distributed system. `open` imports a
 * ground's code when an address first names it. `entry` has a file for each ground, which assembles that code
 * and is also a subpath of the package.
 */
import type { GuardedCells } from "./delta/guarded/guarded.js";
import { isCoreUrl } from "./etcd/address.js";
import type { FleaseOptions, Member, MemberOptions, MemberReport } from "./flease/tcp/types.js";
import { LeaseholdError } from "./lease/errors.js";
import type { Leases } from "./lease/types.js";
import type { MemoryOptions, OpenOptions, OptionsOf } from "./open-options.js";
import {
  checkOpenOptions,
  participantOptionNames,
  splitArguments,
  type UrlsAndOptions,
} from "./runtime/options.js";
import { isFarmUrl } from "./stores/farm-address.js";
import type { FarmOptions } from "./stores/farm-leases.js";

export type * from "./lease/types.js";
export type * from "./open-options.js";
export type {
  Member,
  MemberOptions,
  MemberReport,
  MemberStatus,
  PeerStatus,
  ReadyOptions,
} from "./flease/tcp/types.js";
export type { SecurityOptions } from "./runtime/security/options.js";
export type { Logger } from "./runtime/logger.js";
export type { TlsFiles } from "./runtime/options.js";
export type { GuardedCells, GuardedDatum, GuardedLease } from "./delta/guarded/guarded.js";
export { errorCodes, LeaseholdError, LeaseLostError } from "./lease/errors.js";
export type { ErrorCode, LossReason } from "./lease/errors.js";

/**
 * Opens the leases of a ground:
 *
 * - `flease://host:port`, one or more: a client of the members there. One address is enough, because that
 *   member returns the others; more are safer. Resolves when a majority is connected, or at the timeout if at
 *   least one is.
 * - `memory:name`: leases among the participants of this process, for tests.
 * - `delta+file:///mnt/a,/mnt/b,/mnt/c`, `delta+redis://h1,h2,h3`, `delta+s3://…`, `delta+postgres://…`,
 *   `delta+block:…`: Δ-leases on a majority of these stores; several addresses together are one farm
 *   (`docs/storage.md`). `flease+…`: Flease on such stores. `delta+memory:name` and `flease+memory:name` are
 *   three stores in this process's memory, for tests.
 * - `core://h1:2379,h2:2379,h3:2379`: leases of a consistent core that speaks etcd's v3 API:
 *   `leasehold core`, or an etcd (`docs/core-leases.md`).
 *
 * Calls under way and leases that are held keep the process alive; leases that are only open do not
 * (`docs/embedding.md`).
 *
 * The last argument may be the options. The `guarantees` of the leases say what they promise, and under which
 * assumptions.
 *
 * @throws LeaseholdError `INVALID_URL`, `INVALID_DURATION`, `UNREACHABLE`, `CLUSTER_MISMATCH`,
 * `CONFIG_MISMATCH`, `VERSION_MISMATCH`, `INVALID_CONFIG` (credentials that cannot be used, options that do
 * not exist or have no meaning for the ground), `UNAUTHENTICATED`, `PERMISSION_DENIED`, `NO_QUORUM`,
 * `UNSUPPORTED` (a package that the kind of store needs is not installed), `STORE_…`.
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
export function open<Url extends string>(...urls: Url[]): Promise<Leases>;
export function open<Url extends string>(...args: [...urls: Url[], options: OptionsOf<Url>]): Promise<Leases>;
export async function open(...args: UrlsAndOptions<OpenOptions>): Promise<Leases> {
  const { urls, options } = splitArguments<OpenOptions>(args);
  const [url] = urls;
  if (url?.startsWith("memory:") && urls.length === 1)
    return openMemory(url.slice("memory:".length), options);
  if (urls.some(isCoreUrl)) return (await loadOutside<EtcdEntry>("./entry/etcd.js")).openEtcd(urls, options);
  if (urls.some(isFarmUrl)) return (await import("./entry/delta.js")).openFarm(urls, options);
  return (await import("./entry/flease.js")).openFlease(urls, options);
}

/**
 * Makes this process a member of a Flease cluster: it takes part in decisions, and can hold leases through
 * `member.leases`. Resolves when it listens. Its vote does not count during the recovery wait (`ttlMax` ·
 * 1.22 with the default settings), as it may have forgotten promises from before its restart. It can take
 * leases at once if a majority of the members votes.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `INVALID_DURATION`, `INVALID_URL`.
 * @example
 * ```ts
 * const member = await startMember({
 *   id: "a",
 *   members: { a: "10.0.0.1:7400", b: "10.0.0.2:7400", c: "10.0.0.3:7400" },
 *   keyFile: "cluster.key", // openssl rand -hex 32 > cluster.key
 * });
 * await using lease = await member.leases.acquire("reports/nightly");
 * ```
 */
export async function startMember(options: MemberOptions): Promise<Member> {
  return (await import("./entry/flease.js")).startFleaseMember(options);
}

/**
 * Queries the status of every member of a Flease cluster. The result also lists the members that do not
 * answer, with the reason.
 *
 * @throws LeaseholdError as {@link open}.
 * @example
 * ```ts
 * for (const report of await clusterStatus("flease://10.0.0.1:7400")) {
 *   console.log(report.id, report.reachable ? report.status.state : report.reason);
 * }
 * ```
 */
export async function clusterStatus(...args: UrlsAndOptions<FleaseOptions>): Promise<MemberReport[]> {
  const { urls, options } = splitArguments<FleaseOptions>(args);
  return (await import("./entry/flease.js")).fleaseStatus(urls, options);
}

/**
 * Opens leases on one store that keeps each lease in the same cell as the datum that it guards: each write of
 * the datum also renews the lease, and the store itself refuses writes of a former holder
 * (`docs/storage.md`). `url` is the address of one store with compare-and-set: `delta+file:///mnt/a`,
 * `delta+redis://…`, `delta+postgres://…`, `delta+s3://…`, `delta+memory:name`.
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
export async function openGuardedCells(url: string, options: FarmOptions = {}): Promise<GuardedCells> {
  return (await import("./entry/delta.js")).openCells(url, options);
}

type EtcdEntry = typeof import("./entry/etcd.js");

/**
 * Loads a file of Leasehold that imports optional packages by name. `import` gets the path as a value, so
 * bundlers do not look for those packages, and a bundle does not contain the file.
 */
async function loadOutside<Module>(path: string): Promise<Module> {
  try {
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ path)) as Module;
  } catch (error) {
    throw new LeaseholdError(
      "UNSUPPORTED",
      `open("core://…") does not work in a bundle: import openEtcd of "leasehold/etcd" (docs/bundlers.md)`,
      { cause: error },
    );
  }
}

async function openMemory(name: string, options: MemoryOptions): Promise<Leases> {
  checkOpenOptions(options, participantOptionNames, "memory:, which is this process's own");
  const [memory, { realWorld }] = await Promise.all([
    import("./testing/memory-registry.js"),
    import("./runtime/world.js"),
  ]);
  return memory.openMemory(name, realWorld(), options.name);
}
