import { createHash } from "node:crypto";
import type { MemberId } from "../../raft/types.js";
import type { CoreMember } from "../../state/members.js";
import type { FoundingMember } from "./config.js";

/** A server of a core, as known to the others. */
export interface KnownMember extends FoundingMember {
  readonly id: MemberId;
}

/** Derives ids as etcd does, from the founding members' addresses and the token. */
export function foundingMembers(members: readonly FoundingMember[], token: string): KnownMember[] {
  return members.map((member) => ({
    ...member,
    id: hash(Buffer.from([...member.peerUrls].sort().join("") + token)),
  }));
}

/** A server's identity, and that of the members. */
export interface Identity {
  readonly id: MemberId;
  readonly cluster: bigint;
  readonly members: readonly KnownMember[];
}

/** Converts a member to its form in the initial replicated state. */
export function foundingMember({ id, name, peerUrls }: KnownMember): CoreMember {
  return { id, name, peerUrls, clientUrls: [], learner: false, disk: 0n, joining: false };
}

/** The identity of a server of a new core. */
export function newIdentity(founding: readonly FoundingMember[], name: string, token: string): Identity {
  const members = foundingMembers(founding, token);
  return { id: members.find((member) => member.name === name)!.id, cluster: clusterIdOf(members), members };
}

export function clusterIdOf(members: readonly KnownMember[]): bigint {
  const ids = members.map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));
  const bytes = Buffer.alloc(8 * ids.length);
  ids.forEach((id, index) => bytes.writeBigUInt64BE(id, 8 * index));
  return hash(bytes);
}

function hash(bytes: Buffer): bigint {
  return createHash("sha1").update(bytes).digest().readBigUInt64BE();
}

/** As etcd's tools print ids. */
export function idText(id: bigint): string {
  return id.toString(16);
}
