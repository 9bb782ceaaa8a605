import type { MemberId } from "../raft/types.js";
import { type CoreMember, newMember } from "../state/members.js";

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

/** As many as a core has members: whoever claims to be more only takes the places of others like it. */
const guestsMax = 9;

/**
 * Servers that have called, with the id of this core, and that this server's log does not know. It may lack
 * the very entry that added the one which now leads, and which only that one could send (etcd 3699). They are
 * called back at the address that they gave, as members are.
 */
export class Guests {
  readonly #guests = new Map<MemberId, CoreMember>();

  get all(): readonly CoreMember[] {
    return [...this.#guests.values()];
  }

  /** Whether it is one from now on, or has been. Who was removed is none: it has to hear of that. */
  meet(id: MemberId, peerUrls: readonly string[], { members, removed }: Roll): boolean {
    if (peerUrls.length === 0 || removed.has(id) || members.some((member) => member.id === id)) return false;
    const known = this.#guests.get(id);
    if (known?.peerUrls.join() === peerUrls.join()) return true;
    this.#guests.delete(id);
    const [oldest] = this.#guests.keys();
    if (oldest !== undefined && this.#guests.size >= guestsMax) this.#guests.delete(oldest);
    this.#guests.set(id, newMember(id, peerUrls, true));
    return true;
  }

  /** The log knows more by now. */
  update({ members, removed }: Roll): void {
    for (const id of this.#guests.keys())
      if (removed.has(id) || members.some((member) => member.id === id)) this.#guests.delete(id);
  }
}
