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

/** A server's claims about itself to another. */
export interface Self {
  readonly cluster: bigint;
  readonly id: MemberId;
  readonly name: string;
  readonly disk: bigint;
  /** The cluster's version: the oldest version in which this server communicates. */
  readonly version: number;
}

/** The use of a connection after the hello. */
export type Purpose = "messages" | "bulk" | "snapshot";

/** From this version on, a second connection carries large messages, and proposals may be repeated. */
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
 * Answers a hello. A caller that looks for another server gets no disk id, which it would take for that
 * server's.
 *
 * @param removed the caller is a former member
 */
export function welcomeBytes(self: Self, hello: PeerHello, refusal: string, removed = false): Uint8Array {
  const disk = hello.cluster === self.cluster && hello.to === self.id ? self.disk : 0n;
  const version = spokenWith(hello);
  return toBinary(PeerWelcomeSchema, create(PeerWelcomeSchema, { version, refusal, disk, removed }));
}

/** Reads an answer: the reason of a refusal, if any, and the id of the answering server's disk. */
export function readWelcome(bytes: Buffer): PeerWelcome {
  return fromBinary(PeerWelcomeSchema, bytes);
}

/** The hello of a joining server, which does not know its identity yet. */
export function questionBytes(name: string): Uint8Array {
  const versions = { version: oldestVersion, newest: newestVersion };
  return toBinary(PeerHelloSchema, create(PeerHelloSchema, { ...versions, name, asksMembers: true }));
}

/** The member list, for a caller that sent `questionBytes`. */
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

/** The newest version that the sender supports. */
export function newestOf({ newest, version }: PeerHello): number {
  return Math.max(newest, version);
}

/** The newest version that both sides support. */
export function spokenWith(hello: PeerHello): number {
  return Math.min(newestOf(hello), newestVersion);
}

/** Returns why the sender gets no member list; empty if it does. */
export function objectionTo(hello: PeerHello, { version }: Self): string {
  if (hello.version <= newestVersion && newestOf(hello) >= version) return "";
  const found = rangeText(hello.version, newestOf(hello));
  return `it speaks version ${found} of the protocol between servers, and this one ${rangeText(version, newestVersion)}`;
}

function rangeText(oldest: number, newest: number): string {
  return oldest === newest ? `${newest}` : `${oldest} to ${newest}`;
}

/** Returns why the sender of this hello is refused; empty if it is not. */
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
