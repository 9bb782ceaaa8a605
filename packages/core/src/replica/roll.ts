import type { MemberId } from "../raft/types.js";
import type { CoreMember } from "../state/members.js";

/** What a server says of itself; it is written into the log when that is not there yet. */
export interface SelfDescription {
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly disk: bigint;
}

/** The servers with whom this one talks, and those who were removed. */
export interface Roll {
  readonly members: readonly CoreMember[];
  readonly removed: ReadonlySet<MemberId>;
  /** Of the cluster: servers of none before take part. */
  readonly version: number;
}

/** What a server says first when it calls another. */
export interface PeerCall {
  readonly cluster: bigint;
  readonly from: MemberId;
  readonly to: MemberId;
}

export type Unwelcome = "other-cluster" | "other-server" | "no-member";

/**
 * Why a server does not listen to a caller. What the callers of another cluster say of terms and votes means
 * nothing here, whatever their ids are.
 */
export function unwelcome(
  { cluster, from, to }: PeerCall,
  self: { readonly cluster: bigint; readonly id: MemberId },
  isMember: (id: MemberId) => boolean,
): Unwelcome | undefined {
  if (cluster !== self.cluster) return "other-cluster";
  if (to !== self.id) return "other-server";
  return isMember(from) ? undefined : "no-member";
}

/** As many as a core has members. */
const listedMax = 9;

/** Of one member: as many as the log takes. */
const addressesMax = 16;

/**
 * Members that other members list, and that this server's log does not know or knows elsewhere. The log may lack
 * the very entry that added the member which leads now, and which only that one could send (etcd 3699). A server
 * that is not listed is a stranger, whatever it says of itself.
 */
export class ListedMembers {
  #listed: ReadonlyMap<MemberId, CoreMember> = new Map();

  /** Members that the log does not know. */
  unknownTo({ members, removed }: Pick<Roll, "members" | "removed">): readonly CoreMember[] {
    const known = new Set(members.map(({ id }) => id));
    return [...this.#listed.values()]
      .filter(({ id }) => !known.has(id) && !removed.has(id))
      .slice(0, listedMax);
  }

  /** The addresses that the log has, then those that others have. */
  addressesOf({ id, peerUrls }: CoreMember): readonly string[] {
    return [...new Set([...peerUrls, ...(this.#listed.get(id)?.peerUrls ?? [])])];
  }

  /** Takes the lists of the members that answered, in place of those before. */
  take(lists: readonly (readonly CoreMember[])[]): void {
    if (lists.length === 0) return;
    const listed = new Map<MemberId, CoreMember>();
    for (const member of lists.flat()) {
      const { disk, peerUrls } = listed.get(member.id) ?? { disk: 0n, peerUrls: [] };
      const urls = [...new Set([...peerUrls, ...member.peerUrls])].slice(0, addressesMax);
      listed.set(member.id, { ...member, peerUrls: urls, disk: disk === 0n ? member.disk : disk });
    }
    this.#listed = listed;
  }
}
