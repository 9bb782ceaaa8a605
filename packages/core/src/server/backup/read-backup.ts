import { createHash } from "node:crypto";
import { readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { LeaseholdError, invalidConfig } from "leasehold/common";
import { damaged } from "../../journal/files.js";
import type { CoreState } from "../../state/state.js";
import { finishInTurns } from "../accounts/turns.js";
import { hashBytes } from "./backup-file.js";
import { BoltError, BoltFile, type Source } from "./bolt/read.js";
import { stateOf, TooLargeError } from "./state.js";
import { type BackupStatus, statusOf } from "./status.js";

/** Pages of any size are multiples of this. A remainder is the hash. */
const blockBytes = 512;

/** The first bytes of Leasehold's former backup format. */
const formerMagic = Buffer.from("LHBACK1\n", "latin1");

/** Bytes read at a time for the hash. */
const pieceBytes = 1024 * 1024;

/** Bound of one value with its page. A value is at most as large as a request, and some may share a page. */
const spanBytesMax = 256 * 1024 * 1024;

export interface ReadOptions {
  /**
   * A copy of the database in an etcd data directory has no hash at its end. With this, it is read without
   * one.
   */
  readonly skipHashCheck?: boolean | undefined;
}

export interface Backup {
  readonly state: CoreState;
  /** SHA-256 of the database. */
  readonly hash: string;
}

/**
 * Reads a complete backup, from a core or from etcd. Its hash is checked first.
 *
 * @param bytesMax memory bound of the state
 * @throws LeaseholdError `LOG_CORRUPT` if it is not a backup, or is damaged; `INVALID_CONFIG` if it is
 *   unreadable or too large
 */
export function readBackup(path: string, bytesMax: number, options: ReadOptions = {}): Promise<Backup> {
  return withDatabase(path, options, async (file, hash) => ({
    hash,
    state: await finishInTurns(stateOf(file, bytesMax)),
  })).catch((error: unknown) => {
    if (!(error instanceof TooLargeError)) throw error;
    throw invalidConfig(
      `${path} has more than --quota-backend-bytes allows to keep in memory (${bytesMax}): nothing was restored`,
    );
  });
}

/**
 * Reads a complete backup, and reports its content.
 *
 * @throws as `readBackup` does
 */
export function backupStatus(path: string, options: ReadOptions = {}): Promise<BackupStatus> {
  return withDatabase(path, options, (file) => finishInTurns(statusOf(file)));
}

async function withDatabase<Result>(
  path: string,
  options: ReadOptions,
  read: (file: BoltFile, hash: string) => Promise<Result>,
): Promise<Result> {
  const handle = await open(path).catch((error: unknown) => {
    throw invalidConfig(`${path} cannot be read: ${(error as Error).message}`);
  });
  try {
    const bytes = await databaseBytes(handle, path, options);
    const hash = await hashOf(handle, path, bytes, options);
    return await read(new BoltFile(sourceOf(handle.fd, path, bytes), spanBytesMax), hash);
  } catch (error) {
    if (!(error instanceof BoltError)) throw error;
    throw damaged(`the backup ${path} cannot be read: ${error.message}`);
  } finally {
    await handle.close();
  }
}

/** Length of the database, without the hash. */
async function databaseBytes(handle: FileHandle, path: string, options: ReadOptions): Promise<number> {
  const { size } = await handle.stat();
  const { buffer } = await handle.read(Buffer.alloc(formerMagic.length), 0, formerMagic.length, 0);
  if (buffer.equals(formerMagic))
    throw new LeaseholdError(
      "VERSION_MISMATCH",
      `${path} is a backup of an earlier version: restore it with that version, and make another one of that core`,
    );
  if (size % blockBytes === hashBytes) return size - hashBytes;
  if (options.skipHashCheck === true) return size;
  throw damaged(
    `${path} has no hash at its end: it is cut off, or no backup (--skip-hash-check reads a copy of an etcd's member/snap/db)`,
  );
}

async function hashOf(
  handle: FileHandle,
  path: string,
  bytes: number,
  options: ReadOptions,
): Promise<string> {
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafe(pieceBytes);
  for (let at = 0; at < bytes;) {
    const { bytesRead } = await handle.read(piece, 0, Math.min(pieceBytes, bytes - at), at);
    if (bytesRead === 0) throw damaged(`${path} has become shorter`);
    hash.update(piece.subarray(0, bytesRead));
    at += bytesRead;
  }
  const digest = hash.digest();
  if (options.skipHashCheck === true) return digest.toString("hex");
  const { buffer } = await handle.read(Buffer.alloc(hashBytes), 0, hashBytes, bytes);
  if (!buffer.equals(digest)) throw damaged(`the backup ${path} is damaged: its hash is another one`);
  return digest.toString("hex");
}

/** Reads pages one by one on demand: a file may be larger than its content in memory. */
function sourceOf(descriptor: number, path: string, bytes: number): Source {
  return {
    bytes,
    read(at, length) {
      const page = Buffer.allocUnsafeSlow(length);
      for (let read = 0; read < length;) {
        const more = readSync(descriptor, page, read, length - read, at + read);
        if (more === 0) throw damaged(`${path} has become shorter`);
        read += more;
      }
      return page;
    },
  };
}
