import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type PeerHello, PeerHelloSchema, PeerWelcomeSchema } from "../../gen/leasehold/peer_pb.js";
import type { MemberId } from "../../raft/types.js";
import { idText } from "../common/identity.js";

/** 2: commands of the log have come to mean more (space alarms), and all servers have to apply them alike. */
const version = 2;

/** What a server says of itself to another. */
export interface Self {
  readonly cluster: bigint;
  readonly id: MemberId;
  readonly name: string;
  readonly disk: bigint;
  readonly clientUrls: readonly string[];
}

export function helloBytes(self: Self, to: MemberId, snapshot: boolean): Uint8Array {
  const { cluster, id, name, disk, clientUrls } = self;
  const hello = { version, cluster, from: id, to, snapshot, name, disk, clientURLs: [...clientUrls] };
  return toBinary(PeerHelloSchema, create(PeerHelloSchema, hello));
}

export function readHello(bytes: Buffer): PeerHello {
  return fromBinary(PeerHelloSchema, bytes);
}

export function welcomeBytes({ disk }: Self, refusal: string): Uint8Array {
  return toBinary(PeerWelcomeSchema, create(PeerWelcomeSchema, { version, refusal, disk }));
}

/** Why it refuses us, empty if it does not; and which disk it has. */
export function readWelcome(bytes: Buffer): { readonly refusal: string; readonly disk: bigint } {
  return fromBinary(PeerWelcomeSchema, bytes);
}

/** Why the sender of this hello is refused; empty if it is not. */
export function refusalOf(hello: PeerHello, self: Self, isMember: boolean): string {
  if (hello.version !== version)
    return `it speaks version ${hello.version} of the protocol between servers, and this one ${version}`;
  if (hello.cluster !== self.cluster)
    return `its cluster id is ${idText(hello.cluster)}, and ours is ${idText(self.cluster)}`;
  if (hello.to !== self.id)
    return `it looks for the server ${idText(hello.to)}, and this is ${idText(self.id)}: is an address wrong?`;
  if (!isMember) return `the server ${idText(hello.from)} is no member of this cluster`;
  return "";
}
