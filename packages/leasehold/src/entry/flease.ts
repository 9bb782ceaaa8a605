/**
 * The subpath `leasehold/flease`: leases among peers. `open` of `leasehold` imports this file at the first
 * `flease://` address; a program that imports it directly has no other ground in its bundle.
 */
import { keptAlive } from "../common/keep-alive.js";
import { openFleaseClient } from "../flease/tcp/client.js";
import { askClusterStatus } from "../flease/tcp/cluster-status.js";
import { fleaseOptionNames } from "../flease/tcp/option-names.js";
import type { FleaseOptions, MemberReport } from "../flease/tcp/types.js";
import { openInWorker } from "../flease/tcp/worker/worker-provider.js";
import { parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import { LeaseManager } from "../lease/manager/lease-manager.js";
import { checkOptionNames } from "../lease/option-names.js";
import type { Leases } from "../lease/types.js";
import { realWorld } from "../runtime/world.js";

export { startFleaseMember } from "../flease/tcp/member.js";
export type {
  FleaseOptions,
  Member,
  MemberOptions,
  MemberReport,
  MemberStatus,
  PeerStatus,
  ReadyOptions,
} from "../flease/tcp/types.js";
export type { SecurityOptions } from "../runtime/security/options.js";

/** The default for how long a program with `renewInWorker` may be busy before it counts as hung. */
const busyDefault = "5m";

/**
 * Opens the leases of the members at these addresses, `flease://host:port`, as `open` of `leasehold` does.
 *
 * @throws LeaseholdError as `open`.
 * @example
 * ```ts
 * import { openFlease } from "leasehold/flease";
 *
 * await using leases = await openFlease(["flease://10.0.0.1:7400"], { name: "importer" });
 * await using lease = await leases.acquire("reports/nightly");
 * ```
 */
export async function openFlease(urls: readonly string[], options: FleaseOptions = {}): Promise<Leases> {
  checkOptionNames("open", options, fleaseOptionNames);
  const [addresses, world] = [addressesOf(urls), realWorld()];
  const { renewInWorker = false } = options;
  if (renewInWorker !== false) {
    const busyMsMax = parseDuration(renewInWorker === true ? busyDefault : renewInWorker, "renewInWorker");
    const opening = () => openInWorker(addresses, options, world, busyMsMax);
    return new LeaseManager(await keptAlive(world.keepAlive, opening), world);
  }
  const opening = () => openFleaseClient(addresses, options, world);
  const { provider } = await keptAlive(world.keepAlive, opening);
  return new LeaseManager(provider, world);
}

/** The same as `clusterStatus` of `leasehold`. */
export async function fleaseStatus(
  urls: readonly string[],
  options: FleaseOptions = {},
): Promise<MemberReport[]> {
  checkOptionNames("clusterStatus", options, fleaseOptionNames);
  const world = realWorld();
  return keptAlive(world.keepAlive, () => askClusterStatus(addressesOf(urls), options, world));
}

function addressesOf(urls: readonly string[]): string[] {
  if (urls.length === 0) throw new LeaseholdError("INVALID_URL", "at least one address is needed");
  return urls.map((url) => {
    const address = /^flease:\/\/([^/]+)\/?$/.exec(url)?.[1];
    if (address !== undefined) return address;
    if (url.startsWith("core:"))
      throw new LeaseholdError(
        "UNSUPPORTED",
        `${url} is a core, which has no Flease members to ask for their status`,
      );
    const shown = JSON.stringify(withoutPassword(url));
    const meant = meantBy(url);
    const should =
      "it should be flease://host:port, delta+KIND:… for stores, core://host:port or, alone, memory:name";
    throw new LeaseholdError(
      "INVALID_URL",
      `${shown} is not an address of leases: ${meant === undefined ? should : `did you mean ${meant}?`}`,
    );
  });
}

const withoutPassword = (url: string): string => url.replace(/\/\/[^/@]*@/, "//…@");

/** The address of leases that an address of another form suggests. */
function meantBy(url: string): string | undefined {
  if (url.startsWith("/")) return `delta+file://${url}`;
  const [, scheme = "", rest = ""] = /^([a-z0-9]+):(.*)$/i.exec(withoutPassword(url)) ?? [];
  switch (scheme.toLowerCase()) {
    case "file":
    case "block":
    case "redis":
    case "rediss":
    case "postgres":
    case "postgresql":
    case "s3":
      return `delta+${scheme.toLowerCase()}:${rest}`;
    case "etcd":
    case "etcds":
    case "http":
    case "https":
      return `core:${rest} for a core or an etcd`;
    case "tcp":
    case "tls":
    case "leasehold":
      return `flease:${rest}`;
    default:
      return undefined;
  }
}
