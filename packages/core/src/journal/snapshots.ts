import { createReadStream } from "node:fs";
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { LeaseholdError } from "leasehold/common";
import type { Membership, SnapshotMeta } from "../raft/types.js";
import { checksumOf } from "leasehold/journal";
import { damaged, diskError, ownFileMode, ownFolder, syncFolder } from "./files.js";

/** The first bytes of a snapshot: magic and format. */
const magic = Buffer.from("LHSNAP1\n", "latin1");

/**
 * Exceeds every piece that the server makes. Nothing larger is written, so readers, disks and connections can
 * rely on it.
 */
export const pieceBytesMax = 64 * 1024 * 1024;

/** Pieces are read and written in chunks of this size; larger pieces separately. */
const chunkBytes = 256 * 1024;

/** Length of a piece, and the running checksum up to its end. */
const headerBytes = 8;

const unfinished = ".unfinished";

type Pieces = readonly Uint8Array[];

/**
 * Snapshots of the state machine, each a file of pieces with a running checksum. A file gets its final name
 * when all of it is on disk: files with that form of name are complete.
 */
export class Snapshots {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Opens the folder, creates it if missing, and removes unfinished files. */
  static async open(folder: string): Promise<Snapshots> {
    try {
      await ownFolder(folder);
      for (const name of await readdir(folder)) if (name.endsWith(unfinished)) await rm(join(folder, name));
    } catch (error) {
      throw diskError(`the snapshots in ${folder} cannot be opened`, error);
    }
    return new Snapshots(folder);
  }

  /** Newest first. */
  async list(): Promise<{ index: number; term: number }[]> {
    const names = await readdir(this.#folder);
    return names.flatMap((name) => positionOf(name) ?? []).sort((a, b) => b.index - a.index);
  }

  /** Begins a snapshot, which exists once `commit` has resolved. */
  async begin(meta: SnapshotMeta): Promise<SnapshotWriter> {
    const path = join(this.#folder, fileName(meta));
    const file = await onDisk(open(`${path}${unfinished}`, "w", ownFileMode));
    const writer = new SnapshotWriter(file, path, this.#folder);
    await writer.write([Buffer.from(JSON.stringify(membershipToJson(meta.membership)))]);
    return writer;
  }

  /**
   * @param batches the snapshot's pieces in batches: awaiting each of a million pieces takes longer than
   *   writing it
   */
  async save(meta: SnapshotMeta, batches: Iterable<Pieces> | AsyncIterable<Pieces>): Promise<void> {
    const writer = await this.begin(meta);
    try {
      for await (const pieces of batches) await writer.write(pieces);
      await writer.commit();
    } catch (error) {
      await writer.abort();
      throw error;
    }
  }

  /**
   * Yields the snapshot's pieces in batches, as views of a larger buffer.
   *
   * @throws LeaseholdError `LOG_CORRUPT` or `VERSION_MISMATCH`, also while pieces are being read
   */
  async read(position: {
    index: number;
    term: number;
  }): Promise<{ meta: SnapshotMeta; batches: AsyncGenerator<Pieces> }> {
    const batches = readPieces(join(this.#folder, fileName(position)));
    const { value: first } = await batches.next();
    if (first === undefined) throw damaged(`${fileName(position)} is empty`);
    const membership = membershipFromJson(Buffer.from(first[0]!).toString());
    return {
      meta: { index: position.index, term: position.term, membership },
      batches: following(first.slice(1), batches),
    };
  }

  /** Removes snapshots newer than the one at `index`, which the journal continues from. */
  async removeAfter(index: number): Promise<void> {
    for (const position of await this.list())
      if (position.index > index) await rm(join(this.#folder, fileName(position)), { force: true });
  }

  /**
   * Removes snapshots older than the one at `index`, except the newest of these, which may be in transfer to
   * another server. Call it when the journal continues from `index` and has that on disk.
   */
  async removeBefore(index: number): Promise<void> {
    const older = (await this.list()).filter((position) => position.index < index);
    for (const position of older.slice(1)) await rm(join(this.#folder, fileName(position)), { force: true });
  }
}

async function* following(first: Pieces, batches: AsyncGenerator<Pieces>): AsyncGenerator<Pieces> {
  yield first;
  yield* batches;
}

class SnapshotWriter {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #folder: string;
  #checksum = 0;
  /** Bytes not written yet. */
  #buffer = Buffer.allocUnsafeSlow(2 * chunkBytes);
  #bytes: number;

  constructor(file: FileHandle, path: string, folder: string) {
    this.#file = file;
    this.#path = path;
    this.#folder = folder;
    this.#bytes = magic.copy(this.#buffer);
  }

  /** @throws LeaseholdError `DISK_FAILED`; RangeError for a piece too large to be read */
  async write(pieces: Pieces): Promise<void> {
    for (const piece of pieces) {
      if (piece.length > pieceBytesMax)
        throw new RangeError(`a piece of ${piece.length} bytes in a snapshot`);
      if (this.#bytes + headerBytes + piece.length > this.#buffer.length) await this.#makeRoom(piece.length);
      this.#add(piece);
    }
    if (this.#bytes >= chunkBytes) await this.#flush();
  }

  /** Makes the snapshot durable. */
  async commit(): Promise<void> {
    await this.#makeRoom(0);
    this.#add(new Uint8Array(0));
    await this.#flush();
    await onDisk(this.#file.sync());
    await onDisk(this.#file.close());
    await onDisk(rename(`${this.#path}${unfinished}`, this.#path));
    await onDisk(syncFolder(this.#folder));
  }

  /** Removes the unfinished file. */
  async abort(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await rm(`${this.#path}${unfinished}`, { force: true }).catch(() => undefined);
  }

  async #makeRoom(pieceBytes: number): Promise<void> {
    await this.#flush();
    if (headerBytes + pieceBytes > this.#buffer.length)
      this.#buffer = Buffer.allocUnsafeSlow(headerBytes + pieceBytes);
  }

  /** An empty piece marks the end; the buffer has room for it. */
  #add(piece: Uint8Array): void {
    this.#checksum = checksumOf(piece, this.#checksum);
    const checksumAt = this.#buffer.writeUInt32LE(piece.length, this.#bytes);
    const start = this.#buffer.writeUInt32LE(this.#checksum, checksumAt);
    this.#buffer.set(piece, start);
    this.#bytes = start + piece.length;
  }

  async #flush(): Promise<void> {
    await onDisk(this.#file.writeFile(this.#buffer.subarray(0, this.#bytes)));
    this.#bytes = 0;
  }
}

async function onDisk<Result>(step: Promise<Result>): Promise<Result> {
  try {
    return await step;
  } catch (error) {
    throw diskError("a snapshot cannot be written", error);
  }
}

async function* readPieces(path: string): AsyncGenerator<Pieces> {
  const wrong = (problem: string) => damaged(`the snapshot ${path} ${problem}`);
  const rest = new Unread();
  let checksum = 0;
  let isBegun = false;
  let isWhole = false;
  for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes })) {
    rest.add(chunk as Buffer);
    if (!isBegun) {
      const head = rest.take(magic.length);
      if (head === undefined) continue;
      if (!head.equals(magic))
        throw new LeaseholdError(
          "VERSION_MISMATCH",
          `the snapshot ${path} is of another version of Leasehold`,
        );
      isBegun = true;
    }
    const pieces: Uint8Array[] = [];
    for (;;) {
      const bytes = rest.look(headerBytes);
      if (bytes === undefined) break;
      if (isWhole) throw wrong("goes on after its end");
      // Earlier versions wrote pieces of any length: the file's length bounds the reading.
      const length = bytes.readUInt32LE(rest.start);
      const expected = bytes.readUInt32LE(rest.start + 4);
      const piece = rest.take(headerBytes + length)?.subarray(headerBytes);
      if (piece === undefined) break;
      checksum = checksumOf(piece, checksum);
      if (checksum !== expected) throw wrong("is damaged: the checksum is wrong");
      if (length === 0) isWhole = true;
      else pieces.push(piece);
    }
    if (pieces.length > 0) yield pieces;
  }
  if (!isWhole || rest.length > 0) throw wrong("is damaged, or cut off");
}

/** Bytes read but not consumed yet; chunks are joined once a request can be satisfied. */
class Unread {
  #chunks: Buffer[] = [];
  /** Number of bytes consumed in the first chunk. */
  start = 0;
  length = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.length += chunk.length;
  }

  /** Returns a buffer with that many bytes from `start` on; undefined if there are too few. */
  look(bytes: number): Buffer | undefined {
    if (this.length < bytes) return undefined;
    const [first] = this.#chunks as [Buffer];
    if (this.start + bytes <= first.length) return first;
    this.#chunks = [Buffer.concat([first.subarray(this.start), ...this.#chunks.slice(1)])];
    this.start = 0;
    return this.#chunks[0]!;
  }

  take(bytes: number): Buffer | undefined {
    const found = this.look(bytes);
    if (found === undefined) return undefined;
    const taken = found.subarray(this.start, this.start + bytes);
    this.start += bytes;
    this.length -= bytes;
    if (this.start < found.length) return taken;
    this.#chunks.shift();
    this.start = 0;
    return taken;
  }
}

function fileName({ index, term }: { index: number; term: number }): string {
  const digits = (value: number) => value.toString(16).padStart(14, "0");
  return `${digits(index)}-${digits(term)}.snap`;
}

function positionOf(name: string): { index: number; term: number } | undefined {
  const found = /^([0-9a-f]{14})-([0-9a-f]{14})\.snap$/.exec(name);
  return found === null ? undefined : { index: parseInt(found[1]!, 16), term: parseInt(found[2]!, 16) };
}

function membershipToJson({ voters, learners }: Membership): unknown {
  return { voters: voters.map(String), learners: learners.map(String) };
}

function membershipFromJson(text: string): Membership {
  try {
    const { voters, learners } = JSON.parse(text) as { voters: string[]; learners: string[] };
    return { voters: voters.map(BigInt), learners: learners.map(BigInt) };
  } catch (error) {
    throw damaged("the head of a snapshot cannot be read", { cause: error });
  }
}
