import type { MemberId } from "@leasehold/core/inner/raft/types.js";
import { newestVersion, oldestVersion } from "@leasehold/core/inner/state/members.js";
import type { CoreState } from "@leasehold/core/inner/state/state.js";
import type { SimRandom } from "../../kit/random.js";
import type { Input } from "@leasehold/core/inner/replica/types.js";

/** The aspects of a server that concern its version. */
interface Versioned {
  readonly id: MemberId;
  readonly life: number;
  readonly version: number;
  step(input: Input): void;
}

interface World {
  readonly random: SimRandom;
  readonly servers: readonly Versioned[];
  readonly plan: { readonly upgrades?: boolean | undefined };
  readonly reference: { readonly state: CoreState };
}

/**
 * The version with which an operator starts a server: the former one or this one. An operator downgrades only
 * while another member still has the former version, because after that the cluster's version is raised.
 */
export function versionAtStart(server: Versioned, { plan, random, reference, servers }: World): number {
  if (plan.upgrades !== true) return newestVersion;
  if (servers.every(({ life }) => life <= 1)) return oldestVersion;
  const { members, version } = reference.state;
  const holdBack = servers.filter(
    (other) => other !== server && other.version === oldestVersion && members.get(other.id) !== undefined,
  );
  const mayGoBack = version === oldestVersion && holdBack.length > 0;
  return mayGoBack && random.chance(0.5) ? oldestVersion : newestVersion;
}

/** Connections to a restarted server are new: messages of its former process no longer count. */
export function forgetVersions(server: Versioned, { servers }: Pick<World, "servers">): void {
  for (const other of servers)
    if (other !== server) other.step({ kind: "peer-version", member: server.id, version: 0 });
}
