import type { ByteReader, ByteWriter } from "./bytes.js";
import { FRAME_HEADER_BYTES, FrameKind, WELCOME_FRAME_BYTES_MAX } from "./frame.js";
import { FrameError } from "./frame-error.js";
import { CLUSTER_BYTES_MAX, incarnationOf, NODE_ID_BYTES_MAX } from "./identity.js";
import { roles } from "../../../runtime/security/roles.js";
import type { Claims, Identity } from "./identity.js";
import type { Role } from "../../../runtime/security/roles.js";

/** "LSHD": begins every HELLO and WELCOME, so that a foreign protocol is noticed at its first bytes. */
const MAGIC = 0x4c534844;

/**
 * Version of everything in `docs/internals/wire.md`. Later versions keep the framing, REJECT, and HELLO up
 * to its version, so that both sides can report a mismatch.
 */
export const PROTOCOL_VERSION = 4;

/** Versions that a participant speaks, both included. A connection uses the newest that both sides speak. */
export interface ProtocolVersions {
  readonly oldest: number;
  readonly newest: number;
}

/** A new version keeps the one before, so that members are upgraded one by one. */
export const protocolVersions: ProtocolVersions = { oldest: 4, newest: PROTOCOL_VERSION };

/** An Ed25519 public key, and a signature, on the wire. */
export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** Each side's random part of a handshake, so that no two handshakes are equal. */
export const NONCE_BYTES = 32;

/** The rest of a WELCOME after the names, the keys and the signature. */
export const CLUSTER_DOCUMENT_BYTES_MAX = WELCOME_FRAME_BYTES_MAX - 1024;
const REJECT_TEXT_BYTES_MAX = 1024;

const CONFIG_HASH_BYTES = 16;
const UNKNOWN_HASH = "0".repeat(2 * CONFIG_HASH_BYTES);

export const RoleCode = { member: 1, client: 2, observer: 3 } as const satisfies Record<Role, number>;

/** Fixed fields, both names, and their lengths. */
const HELLO_BYTES_MAX =
  FRAME_HEADER_BYTES + 64 + PUBLIC_KEY_BYTES + NONCE_BYTES + NODE_ID_BYTES_MAX + CLUSTER_BYTES_MAX;

/** Reasons for refusing a connection, as REJECT carries them. */
export const RejectCode = {
  version: 1,
  cluster: 2,
  config: 3,
  view: 4,
  duplicate: 5,
  notAdmitted: 6,
  full: 7,
  badFrame: 8,
  unauthenticated: 9,
  forbidden: 10,
  twin: 11,
} as const;
export type RejectReason = keyof typeof RejectCode;

export interface Rejection {
  readonly reason: RejectReason;
  /** One sentence for people, with the values of both sides. */
  readonly text: string;
}

/** One side's opening of a handshake: its claims, and the key that it will prove to have. */
export interface Introduction {
  readonly claims: Claims;
  readonly publicKey: Uint8Array;
  /** Generated for this handshake alone. */
  readonly nonce: Uint8Array;
}

function encodeIntroduction(
  to: ByteWriter,
  kind: FrameKind,
  { claims, publicKey, nonce }: Introduction,
  version: number,
): number {
  const start = to.beginFrame(kind, HELLO_BYTES_MAX + 2 * (claims.nodeId.length + claims.cluster.length));
  to.u32(MAGIC);
  to.u8(version);
  to.u8(RoleCode[claims.role]);
  to.u16(claims.cellFunction);
  to.u32(claims.view);
  to.raw(publicKey);
  to.raw(nonce);
  to.raw(Buffer.from(claims.configHash === "" ? UNKNOWN_HASH : claims.configHash, "hex"));
  to.text8(claims.cluster);
  to.text8(claims.nodeId);
  return start;
}

export function encodeHello(to: ByteWriter, introduction: Introduction, version = PROTOCOL_VERSION): void {
  to.endFrame(encodeIntroduction(to, FrameKind.hello, introduction, version));
}

/** @param sign receives the body up to the signature, and returns the signature */
export function encodeWelcome(
  to: ByteWriter,
  introduction: Introduction,
  clusterDocument: string,
  sign: (body: Uint8Array) => Uint8Array,
  version = PROTOCOL_VERSION,
): void {
  const start = encodeIntroduction(to, FrameKind.welcome, introduction, version);
  to.reserve(4 + 3 * clusterDocument.length + SIGNATURE_BYTES);
  to.text32(clusterDocument);
  to.raw(sign(to.bytes.subarray(start + FRAME_HEADER_BYTES, to.length)));
  to.endFrame(start);
}

/** The answer to WELCOME: the dialing side signs, too. */
export function encodeProof(to: ByteWriter, signature: Uint8Array): void {
  const start = to.beginFrame(FrameKind.proof, SIGNATURE_BYTES);
  to.raw(signature);
  to.endFrame(start);
}

export function encodeReject(to: ByteWriter, rejection: Rejection): void {
  const start = to.beginFrame(FrameKind.reject, 3 + REJECT_TEXT_BYTES_MAX);
  to.u8(RejectCode[rejection.reason]);
  to.text16(rejection.text.slice(0, REJECT_TEXT_BYTES_MAX / 3));
  to.endFrame(start);
}

/** The content of a HELLO or WELCOME; of a version that we don't speak, the version only. */
export type DecodedIdentity =
  | { readonly version: number; readonly identity: Identity; readonly publicKey: Buffer }
  | { readonly version: number; readonly identity?: undefined };

/** Decodes a HELLO, or the beginning of a WELCOME. */
export function decodeIdentity(from: ByteReader, { oldest, newest } = protocolVersions): DecodedIdentity {
  if (from.u32() !== MAGIC) throw new FrameError("magic", "the first bytes are not Leasehold's");
  const version = from.u8();
  if (version < oldest || version > newest) return { version };
  const roleCode = from.u8();
  const role = roles.find((each) => RoleCode[each] === roleCode);
  if (role === undefined) throw new FrameError("code", `a role ${roleCode}`);
  const cellFunction = from.u16();
  const view = from.u32();
  const publicKey = from.raw(PUBLIC_KEY_BYTES);
  from.raw(NONCE_BYTES); // Needed only as part of the signed bytes.
  const hash = from.hex(CONFIG_HASH_BYTES);
  const cluster = from.name8(role === "member" ? 1 : 0, CLUSTER_BYTES_MAX);
  const nodeId = from.name8(1, NODE_ID_BYTES_MAX);
  const configHash = hash === UNKNOWN_HASH ? "" : hash;
  const incarnation = incarnationOf(publicKey);
  return {
    version,
    publicKey,
    identity: { role, nodeId, incarnation, cluster, configHash, view, cellFunction },
  };
}

export function decodeHello(from: ByteReader, versions = protocolVersions): DecodedIdentity {
  const decoded = decodeIdentity(from, versions);
  if (decoded.identity !== undefined) from.finish();
  return decoded;
}

/** The content of a WELCOME; of a version that we don't speak, the version only. */
export type DecodedWelcome =
  | (DecodedIdentity & {
      readonly identity: Identity;
      readonly clusterDocument: string;
      readonly signature: Buffer;
    })
  | { readonly version: number; readonly identity?: undefined };

export function decodeWelcome(from: ByteReader, versions = protocolVersions): DecodedWelcome {
  const decoded = decodeIdentity(from, versions);
  if (decoded.identity === undefined) return decoded;
  const clusterDocument = from.text32(0, CLUSTER_DOCUMENT_BYTES_MAX);
  const signature = from.raw(SIGNATURE_BYTES);
  from.finish();
  return { ...decoded, clusterDocument, signature };
}

/** Decodes the signature of a PROOF. */
export function decodeProof(from: ByteReader): Buffer {
  const signature = from.raw(SIGNATURE_BYTES);
  from.finish();
  return signature;
}

export function decodeReject(from: ByteReader): Rejection {
  const code = from.u8();
  const reason = (Object.keys(RejectCode) as RejectReason[]).find((name) => RejectCode[name] === code);
  if (reason === undefined) throw new FrameError("code", `a rejection ${code}`);
  const text = from.text16(0, REJECT_TEXT_BYTES_MAX);
  from.finish();
  // The text ends up in logs and terminals, which interpret control characters.
  return { reason, text: text.replaceAll(/\p{Cc}/gu, " ") };
}
