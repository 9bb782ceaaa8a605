import type { MemberId } from "../raft/types.js";
import type { CoreMember } from "../state/members.js";
import type { CoreState } from "../state/state.js";

/** A server's description of itself, which it writes to the log if missing there. */
export interface SelfDescription {
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly disk: bigint;
}

/** The servers that this one connects to, and the removed ones. */
export interface Roll {
  readonly members: readonly CoreMember[];
  readonly removed: ReadonlySet<MemberId>;
  /** The cluster's version: servers that do not support it are excluded. */
  readonly version: number;
}

/**
 * The roll until the log says more. A member that moved before the last snapshot is not dialed at its first
 * address.
 */
export function rollAtStart(
  { members: { all, removed }, version }: CoreState,
  founding: readonly CoreMember[],
): Roll {
  return { members: all.length > 0 ? all : founding, removed: new Set(removed), version };
}

/** A server's first message to another. */
export interface PeerCall {
  readonly cluster: bigint;
  readonly from: MemberId;
  readonly to: MemberId;
}

export type Unwelcome = "other-cluster" | "other-server" | "no-member";

/**
 * Returns the reason to refuse a caller. Terms and votes of another cluster mean nothing here, even if ids
 * are equal.
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

/** The maximum number of members of a core. */
const listedMax = 9;

/** Addresses per member: as many as the log accepts. */
const addressesMax = 16;

/**
 * Members listed by other members, but unknown to this server's log or known at another address. The log may
 * lack the very entry that added the present leader, which only that leader could send (etcd 3699). A server
 * that nobody lists is a stranger, whatever it claims.
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

  /** The log's addresses, followed by those from other lists. */
  addressesOf({ id, peerUrls }: CoreMember): readonly string[] {
    return [...new Set([...peerUrls, ...(this.#listed.get(id)?.peerUrls ?? [])])];
  }

  /** Replaces the lists with those from the members that answered. */
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
