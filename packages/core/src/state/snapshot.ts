import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type Role as RoleRecord, type User as UserRecord } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import {
  type SnapshotAuth,
  type SnapshotHead,
  type SnapshotLease,
  type SnapshotMembers,
  type SnapshotMembersSchema,
  type SnapshotPiece,
  SnapshotPieceSchema,
} from "leasehold/etcd/gen/leasehold/snapshot_pb.js";
import type { AuthState, Role, User } from "./auth-state.js";
import type { LeaseState } from "./leases.js";
import { type CoreMember, oldestVersion } from "./members.js";
import type { Version } from "./revisions.js";
import { type HistoryCase, type HistoryPiece, HistoryWriter, readHistory } from "./snapshot-history.js";
import { CoreState } from "./state.js";
import { finish, type Steps } from "./steps.js";
import { owned } from "./values.js";

/** A snapshot with invalid content. */
export class SnapshotError extends Error {
  override readonly name = "SnapshotError";
}

/** The content of a snapshot. */
export interface SnapshotSource {
  readonly cluster: bigint;
  readonly version: number;
  readonly clusterMs: number;
  readonly spaceAlarms: ReadonlySet<bigint>;
  readonly corruptAlarms: ReadonlySet<bigint>;
  readonly members: { readonly all: readonly CoreMember[]; readonly removed: ReadonlySet<bigint> };
  readonly revisions: {
    readonly current: number;
    readonly compacted: number;
    histories(): Iterable<readonly Version[]>;
  };
  readonly leases: { all(): Iterable<LeaseState> };
  readonly auth: AuthSource;
}

/** Immutable records: a list of them does not change. */
interface AuthSource {
  readonly isEnabled: boolean;
  readonly revision: bigint;
  users(): readonly User[];
  roles(): readonly Role[];
}

/**
 * The present state. The state itself continues, and nothing is copied. The remaining time of a lease may be
 * newer than the rest. It was committed, so the log after the snapshot has it, and no leader reads it before
 * applying that.
 */
export function frozen(state: CoreState): SnapshotSource {
  const { cluster, clusterMs, corruptAlarms, revisions, leases, members, spaceAlarms, version } = state;
  const all = leases.all();
  const view = revisions.view();
  const auth = frozenAuth(state.auth);
  const rest = {
    cluster,
    version,
    clusterMs,
    spaceAlarms: new Set(spaceAlarms),
    corruptAlarms: new Set(corruptAlarms),
    leases: { all: () => all },
    members: { all: members.all, removed: new Set(members.removed) },
  };
  return { ...rest, auth, revisions: view };
}

function frozenAuth(auth: AuthState): AuthSource {
  const { isEnabled, revision } = auth;
  const [users, roles] = [auth.users(), auth.roles()];
  return { isEnabled, revision, users: () => users, roles: () => roles };
}

/**
 * Size at which a piece is complete: a few milliseconds of work for the server that writes or reads it, which
 * does other work between pieces. One version may exceed it by the size of a request, which is far below the
 * bounds of disks and connections.
 */
export const pieceBytesDefault = 64 * 1024;

/** Writes the whole state in pieces, in an order that is the same on every server with the same state. */
export function* snapshotPieces(
  state: SnapshotSource,
  pieceBytes = pieceBytesDefault,
): Generator<Uint8Array> {
  let pieces = 0n;
  for (const piece of piecesOf(state, pieceBytes)) {
    pieces += 1n;
    yield piece;
  }
  yield pieceOf({ case: "pieces", value: pieces });
}

/** @throws SnapshotError if records are missing or surplus */
export function restoreState(pieces: Iterable<Uint8Array>): CoreState {
  const restoring = new RestoringState();
  for (const bytes of pieces) restoring.take(bytes);
  return finish(restoring.finish());
}

type Piece = Exclude<SnapshotPiece["body"], { case: HistoryCase }> | HistoryPiece;
type Body = Exclude<Piece, { case: "pieces" }>;

function* piecesOf(
  {
    auth,
    cluster,
    clusterMs,
    corruptAlarms,
    revisions,
    leases,
    members,
    spaceAlarms,
    version,
  }: SnapshotSource,
  pieceBytes: number,
): Generator<Uint8Array> {
  yield pieceOf({
    case: "head",
    value: {
      cluster,
      revision: BigInt(revisions.current),
      compacted: BigInt(revisions.compacted),
      clusterMilliseconds: BigInt(clusterMs),
      spaceAlarms: sorted(spaceAlarms),
      corruptAlarms: sorted(corruptAlarms),
      // Servers of the oldest version do not know the field.
      version: version === oldestVersion ? 0 : version,
    },
  });
  yield* piecesOfAuth(auth);
  if (members.all.length > 0) yield pieceOf({ case: "members", value: membersValue(members) });
  for (const lease of leases.all()) {
    const { grantedIndex, id, ttlSeconds, name = "", leftMs } = lease;
    const left = leftMs === undefined ? {} : { left: BigInt(leftMs) };
    const granted = BigInt(grantedIndex);
    yield pieceOf({ case: "lease", value: { id, ttl: BigInt(ttlSeconds), name, granted, ...left } });
  }
  const writer = new HistoryWriter();
  for (const history of revisions.histories())
    for (let start = 0; start < history.length;) {
      const end = endOfPiece(history, start, pieceBytes);
      const { key } = history[0]!;
      yield writer.write(start === 0 ? "history" : "continued", key, history.slice(start, end));
      start = end;
    }
}

function* piecesOfAuth(auth: AuthSource): Generator<Uint8Array> {
  const { isEnabled: enabled, revision } = auth;
  if (enabled || revision !== 1n) yield pieceOf({ case: "auth", value: { enabled, revision } });
  for (const { name, roles, secret } of auth.users())
    yield pieceOf({
      case: "user",
      value: { name: utf8(name), password: secret, roles: [...roles] },
    });
  for (const { name, permissions } of auth.roles())
    yield pieceOf({ case: "role", value: { name: utf8(name), keyPermission: [...permissions] } });
}

function utf8(name: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(name);
}

function membersValue({
  all,
  removed,
}: SnapshotSource["members"]): MessageInitShape<typeof SnapshotMembersSchema> {
  const records = all.map((member) => ({
    ...member,
    peerUrls: [...member.peerUrls],
    clientUrls: [...member.clientUrls],
  }));
  return { members: records, removed: sorted(removed) };
}

function sorted(ids: ReadonlySet<bigint>): bigint[] {
  return [...ids].sort((one, other) => (one < other ? -1 : 1));
}

/** Upper bound of the numbers and lengths encoded with a value. */
const versionOverheadBytes = 64;

/** Returns the end of a piece: at least one version, of any size. */
function endOfPiece(history: readonly Version[], start: number, pieceBytes: number): number {
  let bytes = 0;
  let end = start;
  for (; end < history.length; end += 1) {
    bytes += history[end]!.value.length + versionOverheadBytes;
    if (bytes > pieceBytes && end > start) break;
  }
  return end;
}

function pieceOf(body: MessageInitShape<typeof SnapshotPieceSchema>["body"]): Uint8Array {
  return toBinary(SnapshotPieceSchema, create(SnapshotPieceSchema, body === undefined ? {} : { body }));
}

function readPiece(bytes: Uint8Array): Piece {
  try {
    const history = readHistory(bytes);
    if (history !== undefined) return history;
    // Copies the bytes: parts must not retain the rest in memory.
    const { body } = fromBinary(SnapshotPieceSchema, bytes.slice());
    if (body.case === "history" || body.case === "continued")
      throw new Error("something comes before the versions of a key");
    return body;
  } catch (error) {
    throw new SnapshotError("a piece of the snapshot cannot be read", { cause: error });
  }
}

/** Restores a state piece by piece. */
export class RestoringState {
  readonly #state = new CoreState();
  readonly #names = new TextDecoder("utf-8", { ignoreBOM: true });
  #count = 0n;
  #isWhole = false;
  /** The newest version of the present key so far: the key's last one names its lease. */
  #newest: Version | undefined;

  /** @throws SnapshotError for a piece that is out of order */
  take(bytes: Uint8Array): void {
    if (this.#isWhole) throw new SnapshotError("something follows the snapshot's last piece");
    const body = readPiece(bytes);
    if (body.case !== "pieces") {
      this.#count += 1n;
      this.#takeIn(body);
      return;
    }
    if (body.value !== this.#count)
      throw new SnapshotError(`the snapshot has ${this.#count} of ${body.value} pieces`);
    this.#isWhole = true;
  }

  /** @throws SnapshotError if records are missing */
  *finish(): Steps<CoreState> {
    if (!this.#isWhole) throw new SnapshotError("the snapshot is cut off");
    this.#finishKey();
    yield* this.#state.revisions.restored();
    return this.#state;
  }

  #takeIn(body: Body): void {
    if ((body.case === "head") !== (this.#count === 1n))
      throw new SnapshotError("the snapshot's head is not at its head");
    switch (body.case) {
      case "head":
        this.#takeHead(body.value);
        return;
      case "lease":
        this.#takeLease(body.value);
        return;
      case "auth":
        this.#takeAuth(body.value);
        return;
      case "user":
        this.#takeUser(body.value);
        return;
      case "role":
        this.#takeRole(body.value);
        return;
      case "members":
        this.#takeMembers(body.value);
        return;
      case "history":
      case "continued":
        this.#takeHistory(body, body.case === "continued");
        return;
      default:
        throw new SnapshotError("the snapshot has a piece of a kind unknown to this version");
    }
  }

  #takeHead(head: SnapshotHead): void {
    const { cluster, clusterMilliseconds, compacted, corruptAlarms, revision, spaceAlarms, version } = head;
    for (const member of spaceAlarms) this.#state.spaceAlarms.add(member);
    for (const member of corruptAlarms) this.#state.corruptAlarms.add(member);
    this.#state.cluster = cluster;
    this.#state.version = version === 0 ? oldestVersion : version;
    this.#state.clusterMs = Number(clusterMilliseconds);
    this.#state.revisions.current = Number(revision);
    this.#state.revisions.compacted = Number(compacted);
  }

  #takeMembers({ members, removed }: SnapshotMembers): void {
    this.#state.members.set(members);
    for (const id of removed) this.#state.members.removed.add(id);
  }

  #takeLease({ granted, id, ttl, name, left }: SnapshotLease): void {
    const known = name === "" ? undefined : name;
    const lease = this.#state.leases.grant(id, Number(ttl), known, Number(granted));
    lease.leftMs = left === undefined ? undefined : Number(left);
  }

  #takeAuth({ enabled, revision }: SnapshotAuth): void {
    this.#state.auth.isEnabled = enabled;
    this.#state.auth.revision = revision;
  }

  #takeUser({ name, password: secret, roles }: UserRecord): void {
    this.#state.auth.restore({ users: [{ name: this.#names.decode(name), secret: owned(secret), roles }] });
  }

  #takeRole({ name, keyPermission: permissions }: RoleRecord): void {
    this.#state.auth.restore({ roles: [{ name: this.#names.decode(name), permissions }] });
  }

  #takeHistory({ key, versions }: HistoryPiece, isContinued: boolean): void {
    if (isContinued !== (key === this.#newest?.key))
      throw new SnapshotError("the snapshot's pieces of one key are not together");
    if (versions.length === 0) throw new SnapshotError("a key of the snapshot has no version");
    if (!isContinued) this.#finishKey();
    this.#state.revisions.restore(versions);
    this.#newest = versions.at(-1);
  }

  #finishKey(): void {
    // An etcd backup may have keys whose lease does not exist: they are kept, detached.
    if (this.#newest === undefined || this.#state.leases.get(this.#newest.lease) === undefined) return;
    this.#state.leases.attach(this.#newest.key, this.#newest.lease, 0n);
  }
}
