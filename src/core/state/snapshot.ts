import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type SnapshotPiece,
  SnapshotPieceSchema,
  type SnapshotVersion,
} from "../gen/leasehold/snapshot_pb.js";
import { bytesOf, keyOf } from "./keys.js";
import type { LeaseState } from "./leases.js";
import type { Version } from "./revisions.js";
import { CoreState } from "./state.js";

/** A snapshot that cannot be trusted. */
export class SnapshotError extends Error {
  override readonly name = "SnapshotError";
}

/** What a snapshot is made of. */
export interface SnapshotSource {
  readonly cluster: bigint;
  readonly clusterMs: number;
  readonly revisions: {
    readonly current: number;
    readonly compacted: number;
    histories(): Iterable<readonly Version[]>;
  };
  readonly leases: { all(): Iterable<LeaseState> };
}

/** The state as it is now, while it goes on: references are copied, contents are not. */
export function frozen({ cluster, clusterMs, revisions, leases }: CoreState): SnapshotSource {
  const histories = Array.from(revisions.histories(), (history) => [...history]);
  const all = Array.from(leases.all(), (lease) => ({ ...lease }));
  const { current, compacted } = revisions;
  return {
    cluster,
    clusterMs,
    revisions: { current, compacted, histories: () => histories },
    leases: { all: () => all },
  };
}

/** The whole state in pieces, in an order that is the same on every server with the same state. */
export function* snapshotPieces(state: SnapshotSource): Generator<Uint8Array> {
  let pieces = 0n;
  for (const piece of piecesOf(state)) {
    pieces += 1n;
    yield toBinary(SnapshotPieceSchema, piece);
  }
  yield toBinary(
    SnapshotPieceSchema,
    create(SnapshotPieceSchema, { body: { case: "pieces", value: pieces } }),
  );
}

/** @throws SnapshotError if something is missing or more than was written. */
export function restoreState(pieces: Iterable<Uint8Array>): CoreState {
  const state = new CoreState();
  let count = 0n;
  let isWhole = false;
  for (const bytes of pieces) {
    if (isWhole) throw new SnapshotError("something follows the snapshot's last piece");
    const { body } = readPiece(bytes);
    if (body.case === "pieces") {
      if (body.value !== count) throw new SnapshotError(`the snapshot has ${count} of ${body.value} pieces`);
      isWhole = true;
    } else {
      count += 1n;
      takeIn(state, body, count);
    }
  }
  if (!isWhole) throw new SnapshotError("the snapshot is cut off");
  state.revisions.restored();
  return state;
}

type Body = Exclude<SnapshotPiece["body"], { case: "pieces" }>;

function* piecesOf({ cluster, clusterMs, revisions, leases }: SnapshotSource): Generator<SnapshotPiece> {
  yield pieceOf({
    case: "head",
    value: {
      cluster,
      revision: BigInt(revisions.current),
      compacted: BigInt(revisions.compacted),
      clusterMilliseconds: BigInt(clusterMs),
    },
  });
  for (const lease of [...leases.all()].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const { id, ttlSeconds, name = "", leftMs } = lease;
    const left = leftMs === undefined ? {} : { left: BigInt(leftMs) };
    yield pieceOf({ case: "lease", value: { id, ttl: BigInt(ttlSeconds), name, ...left } });
  }
  for (const history of revisions.histories()) {
    const versions = history.map((version) => ({
      modified: BigInt(version.modified),
      sub: BigInt(version.sub),
      created: BigInt(version.created),
      version: BigInt(version.version),
      value: version.value,
      lease: version.lease,
    }));
    yield pieceOf({ case: "history", value: { key: bytesOf(history[0]!.key), versions } });
  }
}

function pieceOf(body: MessageInitShape<typeof SnapshotPieceSchema>["body"]): SnapshotPiece {
  return create(SnapshotPieceSchema, body === undefined ? {} : { body });
}

function readPiece(bytes: Uint8Array): SnapshotPiece {
  try {
    return fromBinary(SnapshotPieceSchema, bytes);
  } catch (error) {
    throw new SnapshotError("a piece of the snapshot cannot be read", { cause: error });
  }
}

function takeIn(state: CoreState, body: Body, count: bigint): void {
  const { revisions, leases } = state;
  if ((body.case === "head") !== (count === 1n))
    throw new SnapshotError("the snapshot's head is not at its head");
  switch (body.case) {
    case "head":
      state.cluster = body.value.cluster;
      state.clusterMs = Number(body.value.clusterMilliseconds);
      revisions.current = Number(body.value.revision);
      revisions.compacted = Number(body.value.compacted);
      return;
    case "lease": {
      const { id, ttl, name, left } = body.value;
      const lease = leases.grant(id, Number(ttl), name === "" ? undefined : name);
      lease.leftMs = left === undefined ? undefined : Number(left);
      return;
    }
    case "history": {
      const key = keyOf(body.value.key);
      const history = body.value.versions.map((version) => toVersion(key, version));
      if (history.length === 0) throw new SnapshotError("a key of the snapshot has no version");
      revisions.restore(history);
      const newest = history.at(-1)!;
      if (newest.lease !== 0n) leases.attach(key, newest.lease);
      return;
    }
    default:
      throw new SnapshotError("the snapshot has a piece of a kind that this version does not know");
  }
}

function toVersion(key: string, fields: SnapshotVersion): Version {
  return {
    key,
    modified: Number(fields.modified),
    sub: Number(fields.sub),
    created: Number(fields.created),
    version: Number(fields.version),
    value: fields.value,
    lease: fields.lease,
  };
}
