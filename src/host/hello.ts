import type { ByteReader, ByteWriter } from "./bytes.js";
import { FRAME_HEADER_BYTES, FrameKind } from "./frame.js";
import { FrameError } from "./frame-error.js";
import type { AuthCause } from "./security/auth-fault.js";
import { roles } from "./security/roles.js";
import type { Identity, Role } from "./transport-handler.js";

/** "LSHD": what every HELLO and WELCOME begins with, so that a stranger is noticed at its first bytes. */
const MAGIC = 0x4c534844;

/**
 * The version of everything in `docs/wire-protocol.md`. The framing, REJECT, and HELLO up to its version stay as
 * they are in every later version, so that two versions can tell each other that they differ.
 */
export const PROTOCOL_VERSION = 1;

export const NODE_ID_BYTES_MAX = 128;
export const CLUSTER_BYTES_MAX = 128;
export const CLUSTER_DOCUMENT_BYTES_MAX = 32 * 1024;
const REJECT_TEXT_BYTES_MAX = 1024;

const CONFIG_HASH_BYTES = 16;
const INCARNATION_BYTES = 8;
const UNKNOWN_HASH = "0".repeat(2 * CONFIG_HASH_BYTES);

export const RoleCode = { member: 1, client: 2, observer: 3 } as const satisfies Record<Role, number>;

/** Fixed fields, both names, and the lengths before them. */
const HELLO_BYTES_MAX = FRAME_HEADER_BYTES + 64 + NODE_ID_BYTES_MAX + CLUSTER_BYTES_MAX;

/** Why a connection was refused, as REJECT carries it. */
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
  /** One sentence for people, naming what each side has. */
  readonly text: string;
  /** What was wrong with the credentials, if that was it. It is counted and not sent. */
  readonly auth?: AuthCause;
}

/** The frame was begun at `start`: now its length is known. */
function closeFrame(to: ByteWriter, start: number): void {
  to.view.setUint32(start, to.length - start - 4);
}

function encodeIdentity(to: ByteWriter, kind: FrameKind, identity: Identity): number {
  const start = to.length;
  to.reserve(HELLO_BYTES_MAX + 2 * (identity.nodeId.length + identity.cluster.length));
  to.u32(0);
  to.u8(kind);
  to.u32(MAGIC);
  to.u8(PROTOCOL_VERSION);
  to.u8(RoleCode[identity.role]);
  to.u16(identity.cellFunction);
  to.u32(identity.view);
  to.raw(Buffer.from(identity.incarnation, "hex"));
  to.raw(Buffer.from(identity.configHash === "" ? UNKNOWN_HASH : identity.configHash, "hex"));
  to.text8(identity.cluster);
  to.text8(identity.nodeId);
  return start;
}

export function encodeHello(to: ByteWriter, identity: Identity): void {
  closeFrame(to, encodeIdentity(to, FrameKind.hello, identity));
}

export function encodeWelcome(to: ByteWriter, identity: Identity, clusterDocument: string): void {
  const start = encodeIdentity(to, FrameKind.welcome, identity);
  to.reserve(4 + 3 * clusterDocument.length);
  to.text32(clusterDocument);
  closeFrame(to, start);
}

export function encodeReject(to: ByteWriter, rejection: Rejection): void {
  const start = to.length;
  const text = rejection.text.slice(0, REJECT_TEXT_BYTES_MAX / 3);
  to.reserve(FRAME_HEADER_BYTES + 3 + REJECT_TEXT_BYTES_MAX);
  to.u32(0);
  to.u8(FrameKind.reject);
  to.u8(RejectCode[rejection.reason]);
  to.text16(text);
  closeFrame(to, start);
}

/** What a HELLO or WELCOME says; of one in another version only that. */
export type DecodedIdentity =
  | { readonly version: typeof PROTOCOL_VERSION; readonly identity: Identity }
  | { readonly version: number; readonly identity?: undefined };

/** Reads a HELLO, or the identity at the beginning of a WELCOME. */
export function decodeIdentity(from: ByteReader): DecodedIdentity {
  if (from.u32() !== MAGIC) throw new FrameError("magic", "the first bytes are not Leasehold's");
  const version = from.u8();
  if (version !== PROTOCOL_VERSION) return { version };
  const roleCode = from.u8();
  const role = roles.find((each) => RoleCode[each] === roleCode);
  if (role === undefined) throw new FrameError("code", `a role ${roleCode}`);
  const cellFunction = from.u16();
  const view = from.u32();
  const incarnation = from.hex(INCARNATION_BYTES);
  const hash = from.hex(CONFIG_HASH_BYTES);
  const cluster = from.text8(role === "member" ? 1 : 0, CLUSTER_BYTES_MAX);
  const nodeId = from.text8(1, NODE_ID_BYTES_MAX);
  const configHash = hash === UNKNOWN_HASH ? "" : hash;
  return { version, identity: { role, nodeId, incarnation, cluster, configHash, view, cellFunction } };
}

export function decodeHello(from: ByteReader): DecodedIdentity {
  const decoded = decodeIdentity(from);
  if (decoded.identity !== undefined) from.finish();
  return decoded;
}

export function decodeWelcome(from: ByteReader): DecodedIdentity & { readonly clusterDocument: string } {
  const decoded = decodeIdentity(from);
  if (decoded.identity === undefined) return { ...decoded, clusterDocument: "" };
  const clusterDocument = from.text32(0, CLUSTER_DOCUMENT_BYTES_MAX);
  from.finish();
  return { ...decoded, clusterDocument };
}

export function decodeReject(from: ByteReader): Rejection {
  const code = from.u8();
  const reason = (Object.keys(RejectCode) as RejectReason[]).find((name) => RejectCode[name] === code);
  if (reason === undefined) throw new FrameError("code", `a rejection ${code}`);
  const text = from.text16(0, REJECT_TEXT_BYTES_MAX);
  from.finish();
  // It ends in logs and on terminals, where control characters would do something.
  return { reason, text: text.replaceAll(/\p{Cc}/gu, " ") };
}
