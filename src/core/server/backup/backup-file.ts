import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isRecord, recordOrEmpty } from "../../../common/json.js";
import { LeaseholdError } from "../../../lease/errors.js";
import { checksumOf } from "../../journal/checksum.js";
import { damaged } from "../../journal/files.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { RestoringState, SnapshotError, snapshotPieces } from "../../state/snapshot.js";
import type { CoreState } from "../../state/state.js";
import { finishInTurns, Turns } from "../common/turns.js";

/** What it is, and its format. */
const magic = Buffer.from("LHBACK1\n", "latin1");
const headerBytes = 8;
const hashBytes = 32;
/** `etcdctl snapshot save` believes that a file ends with a hash if it is longer than full blocks by that. */
const blockBytes = 512;

/** Of which moment a backup is. */
export interface BackupHead {
  readonly cluster: bigint;
  readonly index: number;
  readonly term: number;
  readonly revision: number;
}

/**
 * A backup as bytes: pieces of the state, each with its length and a checksum that runs through all of them,
 * zeros up to a full block, and SHA-256 over everything before.
 */
export function* backupBytes({ meta, source }: FrozenState): Generator<Buffer> {
  const hash = createHash("sha256");
  let length = 0;
  let checksum = 0;
  const hashed = (bytes: Buffer): Buffer => {
    hash.update(bytes);
    length += bytes.length;
    return bytes;
  };
  const framed = (piece: Uint8Array): Buffer => {
    checksum = checksumOf(piece, checksum);
    const header = Buffer.allocUnsafe(headerBytes);
    header.writeUInt32LE(piece.length, 0);
    header.writeUInt32LE(checksum, 4);
    return hashed(Buffer.concat([header, piece]));
  };
  yield hashed(magic);
  const head = {
    cluster: source.cluster.toString(16),
    index: meta.index,
    term: meta.term,
    revision: source.revisions.current,
  };
  yield framed(Buffer.from(JSON.stringify(head)));
  for (const piece of snapshotPieces(source)) yield framed(piece);
  yield framed(new Uint8Array(0));
  const missing = (blockBytes - (length % blockBytes)) % blockBytes;
  if (missing > 0) yield hashed(Buffer.alloc(missing));
  yield hash.digest();
}

export interface Backup {
  readonly head: BackupHead;
  readonly state: CoreState;
  /** SHA-256 of the file's content. */
  readonly hash: string;
  readonly bytes: number;
}

/**
 * Reads a backup as a whole; all of it is checked first.
 *
 * @throws LeaseholdError `LOG_CORRUPT` if it is no backup, or a damaged one; `INVALID_CONFIG` if it cannot be read
 */
export async function readBackup(path: string): Promise<Backup> {
  const file = await readFile(path).catch((error: unknown) => {
    throw new LeaseholdError("INVALID_CONFIG", `${path} cannot be read: ${(error as Error).message}`);
  });
  if (!file.subarray(0, magic.length).equals(magic))
    throw damaged(`${path} is no backup of a core (those of an etcd are another thing)`);
  const content = file.subarray(0, Math.max(0, file.length - hashBytes));
  const hash = createHash("sha256").update(content).digest();
  if (!hash.equals(file.subarray(content.length)))
    throw damaged(`the backup ${path} is damaged or cut off: its hash is another one`);
  const pieces = piecesOf(content, path);
  const first = pieces.next();
  if (first.done === true) throw damaged(`the backup ${path} is empty`);
  const head = readHead(first.value, path);
  const restoring = new RestoringState();
  const turns = new Turns();
  try {
    for (const piece of pieces) {
      restoring.take(piece);
      if (turns.isOver) await turns.next();
    }
    const state = await finishInTurns(restoring.finish());
    return { head, state, hash: hash.toString("hex"), bytes: file.length };
  } catch (error) {
    if (!(error instanceof SnapshotError)) throw error;
    throw damaged(`the backup ${path} cannot be read: ${error.message}`);
  }
}

function* piecesOf(content: Buffer, path: string): Generator<Uint8Array> {
  let checksum = 0;
  for (let at = magic.length; at + headerBytes <= content.length;) {
    const length = content.readUInt32LE(at);
    const expected = content.readUInt32LE(at + 4);
    const piece = content.subarray(at + headerBytes, at + headerBytes + length);
    checksum = checksumOf(piece, checksum);
    if (piece.length < length || checksum !== expected)
      throw damaged(`the backup ${path} is damaged at ${at}`);
    if (length === 0) return;
    yield new Uint8Array(piece);
    at += headerBytes + length;
  }
  throw damaged(`the backup ${path} has no end`);
}

function readHead(piece: Uint8Array, path: string): BackupHead {
  let found: unknown;
  try {
    found = JSON.parse(Buffer.from(piece).toString());
  } catch {
    found = undefined;
  }
  const { cluster, index, revision, term } = recordOrEmpty(found);
  const isWhole =
    isRecord(found) && typeof cluster === "string" && /^[0-9a-f]{1,16}$/.test(cluster) && isCount(index);
  if (!isWhole || !isCount(revision) || !isCount(term))
    throw damaged(`the head of the backup ${path} cannot be read`);
  return { cluster: BigInt(`0x${cluster}`), index: index as number, revision, term };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
