import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type PeerHello,
  PeerHelloSchema,
  type PeerWelcome,
  PeerWelcomeSchema,
} from "leasehold/etcd/gen/leasehold/peer_pb.js";
import type { MemberId } from "../../raft/types.js";
import { unwelcome } from "../../replica/roll.js";
import { type CoreMember, newestVersion, oldestVersion } from "../../state/members.js";
import { idText } from "../config/identity.js";

/** What a server says of itself to another. */
export interface Self {
  readonly cluster: bigint;
  readonly id: MemberId;
  readonly name: string;
  readonly disk: bigint;
  /** Of the cluster: the oldest that this server speaks with others. */
  readonly version: number;
}

/** What the rest of the connection is. */
export type Purpose = "messages" | "bulk" | "snapshot";

/** From this version on there is a second connection, for what may be large, and proposals may come again. */
export const bulkSince = 8;

export function helloBytes(
  { cluster, id, name, disk, version }: Self,
  to: MemberId,
  purpose: Purpose,
): Uint8Array {
  const isFor = { snapshot: purpose === "snapshot", bulk: purpose === "bulk" };
  const hello = { version, newest: newestVersion, cluster, from: id, to, ...isFor, name, disk };
  return toBinary(PeerHelloSchema, create(PeerHelloSchema, hello));
}

export function purposeOf({ bulk, snapshot }: PeerHello): Purpose {
  if (snapshot) return "snapshot";
  return bulk ? "bulk" : "messages";
}

export function readHello(bytes: Buffer): PeerHello {
  return fromBinary(PeerHelloSchema, bytes);
}

/**
 * For one that looked for somebody else, our disk is no answer: it would take it for that one's.
 *
 * @param removed the other one is no member any more
 */
export function welcomeBytes(self: Self, hello: PeerHello, refusal: string, removed = false): Uint8Array {
  const disk = hello.cluster === self.cluster && hello.to === self.id ? self.disk : 0n;
  const version = spokenWith(hello);
  return toBinary(PeerWelcomeSchema, create(PeerWelcomeSchema, { version, refusal, disk, removed }));
}

/** Why it refuses us, empty if it does not; and which disk it has. */
export function readWelcome(bytes: Buffer): PeerWelcome {
  return fromBinary(PeerWelcomeSchema, bytes);
}

/** Of a server that is to join, and does not know yet who it is. */
export function questionBytes(name: string): Uint8Array {
  const versions = { version: oldestVersion, newest: newestVersion };
  return toBinary(PeerHelloSchema, create(PeerHelloSchema, { ...versions, name, asksMembers: true }));
}

/** Who is there, for one that asked with `questionBytes`. */
export function membersBytes(
  { cluster }: Self,
  hello: PeerHello,
  members: readonly CoreMember[],
): Uint8Array {
  const version = spokenWith(hello);
  const records = members.map((member) => ({
    ...member,
    peerUrls: [...member.peerUrls],
    clientUrls: [...member.clientUrls],
  }));
  return toBinary(PeerWelcomeSchema, create(PeerWelcomeSchema, { version, cluster, members: records }));
}

/** The newest that its sender speaks. */
export function newestOf({ newest, version }: PeerHello): number {
  return Math.max(newest, version);
}

/** The newest that both speak. */
export function spokenWith(hello: PeerHello): number {
  return Math.min(newestOf(hello), newestVersion);
}

/** Why its sender is not told who is there; empty if it is. */
export function objectionTo(hello: PeerHello, { version }: Self): string {
  if (hello.version <= newestVersion && newestOf(hello) >= version) return "";
  const found = rangeText(hello.version, newestOf(hello));
  return `it speaks version ${found} of the protocol between servers, and this one ${rangeText(version, newestVersion)}`;
}

function rangeText(oldest: number, newest: number): string {
  return oldest === newest ? `${newest}` : `${oldest} to ${newest}`;
}

/** Why the sender of this hello is refused; empty if it is not. */
export function refusalOf(hello: PeerHello, self: Self, isMember: boolean): string {
  const objection = objectionTo(hello, self);
  if (objection !== "") return objection;
  switch (unwelcome(hello, self, () => isMember)) {
    case "other-cluster":
      return `its cluster id is ${idText(hello.cluster)}, and ours is ${idText(self.cluster)}`;
    case "other-server":
      return `it looks for the server ${idText(hello.to)}, and this is ${idText(self.id)}: is an address wrong?`;
    case "no-member":
      return `the server ${idText(hello.from)} is no member of this cluster`;
    default:
      return "";
  }
}
