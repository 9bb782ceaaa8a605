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

/** As many as a core has members. */
const guestsMax = 9;

/** Who wants to be heard tries again several times a second: one that is silent for so long is gone, ms. */
const guestMs = 10_000;

/** A server that says hello, and where it is. */
export interface GuestCall {
  readonly id: MemberId;
  readonly peerUrls: readonly string[];
  /** From where it calls: who claims to be many takes the places of its own. */
  readonly host: string;
}

interface Guest extends GuestCall {
  readonly member: CoreMember;
  heardMs: number;
  /** It has answered where it said that it is. */
  isReached: boolean;
}

/**
 * Servers that have called, with the id of this core, and that this server's log does not know. It may lack
 * the very entry that added the one which now leads, and which only that one could send (etcd 3699). They are
 * called back at the address that they gave, as members are. Anybody may be one: their number is bounded, those
 * that were reached stay, and who is silent goes.
 */
export class Guests {
  readonly #guests = new Map<MemberId, Guest>();

  get all(): readonly CoreMember[] {
    return Array.from(this.#guests.values(), ({ member }) => member);
  }

  has(id: MemberId): boolean {
    return this.#guests.has(id);
  }

  /** Whether it is one from now on, or has been. Who was removed is none: it has to hear of that. */
  meet(call: GuestCall, { members, removed }: Roll, nowMs: number): boolean {
    const { id, peerUrls } = call;
    if (peerUrls.length === 0 || removed.has(id) || members.some((member) => member.id === id)) return false;
    const known = this.#guests.get(id);
    if (known?.peerUrls.join() === peerUrls.join()) {
      known.heardMs = nowMs;
      return true;
    }
    // Whoever claims to be it elsewhere waits until it is gone.
    if (known?.isReached === true) return true;
    this.#guests.delete(id);
    if (this.#guests.size >= guestsMax && !this.#makeRoom(call.host)) return false;
    const member = newMember(id, peerUrls, true);
    this.#guests.set(id, { ...call, member, heardMs: nowMs, isReached: false });
    return true;
  }

  reached(id: MemberId): void {
    const guest = this.#guests.get(id);
    if (guest !== undefined) guest.isReached = true;
  }

  /** Whether any has gone that said nothing lately; those with whom there is a connection stay. */
  expire(nowMs: number, isConnected: (id: MemberId) => boolean): boolean {
    const before = this.#guests.size;
    for (const [id, guest] of this.#guests)
      if (isConnected(id)) guest.heardMs = nowMs;
      else if (nowMs - guest.heardMs > guestMs) this.#guests.delete(id);
    return this.#guests.size < before;
  }

  /** The log knows more by now. */
  update({ members, removed }: Roll): void {
    for (const id of this.#guests.keys())
      if (removed.has(id) || members.some((member) => member.id === id)) this.#guests.delete(id);
  }

  /**
   * Whether one has given its place to one more from there: of those from where most have come, one that was not
   * reached; another only to one that comes from where fewer do.
   */
  #makeRoom(host: string): boolean {
    const counts = new Map<string, number>([[host, 1]]);
    for (const guest of this.#guests.values()) counts.set(guest.host, (counts.get(guest.host) ?? 0) + 1);
    const most = [...counts.values()].reduce((one, other) => Math.max(one, other), 0);
    const crowd = [...this.#guests.values()].filter((guest) => counts.get(guest.host) === most);
    const isFromFewer = counts.get(host)! < most;
    const one = crowd.find(({ isReached }) => !isReached) ?? (isFromFewer ? crowd[0] : undefined);
    return one !== undefined && this.#guests.delete(one.id);
  }
}
