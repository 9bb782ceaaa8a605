import { getOrInsert } from "../../common/maps.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Timer, World } from "../../common/ports.js";
import { Descriptions } from "../views/descriptions.js";
import { readClusterDocument } from "./cluster.js";
import type { Cluster } from "../views/cluster.js";
import type { Link } from "./transport/link.js";
import type { Credentials } from "../../runtime/security/credentials.js";
import { Transport } from "./transport/transport.js";
import type { Claims } from "./wire/identity.js";
import type { TransportHandler } from "./transport/transport-handler.js";

/** After the first answer, the other members get this long to confirm the settings. */
const graceMs = 250;

/** A cluster as its members describe it. */
export interface Discovery {
  readonly cluster: Cluster;
  /** Addresses at which members were actually reached, by id. */
  readonly addresses: ReadonlyMap<string, string>;
}

/**
 * Asks the addresses for the cluster. One answer describes all of it, but a member with deviating settings
 * describes a cluster that does not exist, and one in an older view describes former members. So a
 * majority's description is returned at once; otherwise, when all have answered or a grace period has
 * passed, every description, most frequent first. There is at least one.
 */
export function discover(
  addresses: readonly string[],
  claims: Claims,
  timeoutMs: number,
  world: World,
  credentials: Credentials | undefined,
): Promise<readonly Discovery[]> {
  return new Promise((resolve, reject) => {
    const failures = new Map<string, LeaseholdError>();
    const answered = new Set<string>();
    const found = new Map<string, Descriptions>();
    const asked = new Set(addresses);
    let grace: Timer | undefined;
    const finish = (settle: () => void) => {
      timer.cancel();
      grace?.cancel();
      void transport.close().then(settle);
    };
    const succeed = () => {
      const byVotes = [...found.values()].sort((one, other) => other.addresses.size - one.addresses.size);
      finish(() => resolve(byVotes));
    };
    const timer = world.timers.after(timeoutMs, () => finish(() => reject(unreachable(addresses, failures))));
    const failed = (address: string, error: LeaseholdError) => {
      failures.set(address, error);
      answered.add(address);
      const refusals = [...failures.values()].filter((failure) => failure.code !== "UNREACHABLE");
      if (found.size > 0 && answered.size >= asked.size) succeed();
      // A member that refused this client will refuse it again.
      else if (refusals.length === asked.size) finish(() => reject(refusals[0]!));
    };
    const connected = ({ address, peerId, clusterDocument }: Link) => {
      let cluster: Cluster;
      try {
        cluster = readClusterDocument(clusterDocument);
      } catch (error) {
        failed(address, error as LeaseholdError);
        return;
      }
      answered.add(address);
      const known = getOrInsert(found, cluster.configHash, () => new Descriptions());
      known.add(cluster, peerId, address);
      if (known.isSettled(asked.size) || answered.size >= asked.size) succeed();
      else grace ??= world.timers.after(graceMs, succeed);
    };
    const transport = new Transport(claims, world, discoverer(connected, failed, world), { credentials });
    try {
      for (const address of addresses) transport.dial(address);
    } catch (error) {
      finish(() => reject(error));
    }
  });
}

function unreachable(
  addresses: readonly string[],
  failures: ReadonlyMap<string, LeaseholdError>,
): LeaseholdError {
  const refusal = [...failures.values()].find((failure) => failure.code !== "UNREACHABLE");
  if (refusal !== undefined) return refusal;
  const causes = addresses.map((address) => `${address} (${failures.get(address)?.message ?? "no answer"})`);
  return new LeaseholdError("UNREACHABLE", `no member could be reached at ${causes.join(", ")}`);
}

/**
 * The transport handler of a client that does not know its cluster yet: it waits for the first member and
 * sends nothing.
 */
function discoverer(
  connected: (link: Link) => void,
  failed: (address: string, error: LeaseholdError) => void,
  { clock }: World,
): TransportHandler {
  const ignore = () => undefined;
  return {
    connections: {
      connected,
      refused: failed,
      unreachable: (address, reason) => failed(address, new LeaseholdError("UNREACHABLE", reason)),
      admit: ignore,
      clusterDocument: () => "",
      repelled: ignore,
      refusedAsDuplicate: ignore,
      duplicateRefused: ignore,
      disconnected: ignore,
    },
    messages: {
      stamp: (into) => {
        into.monoMs = clock.monotonicMs();
        into.loMs = into.hiMs = clock.wallMs();
      },
      chunk: ignore,
      stamped: ignore,
      message: ignore,
      chunkEnd: ignore,
    },
    calls: { answer: () => null },
  };
}
