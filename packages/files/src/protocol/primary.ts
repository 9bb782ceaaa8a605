import { readBothClocks, timeLeft, LeaseholdError, type Lease } from "leasehold/common";
import type { FileStat } from "../types.js";
import { FileUncertainError } from "../uncertain.js";
import { Copies } from "./copies.js";
import { forEachOf } from "./each.js";
import { checkRange, isLeaseholdError, notFound, TenureOver } from "./failures.js";
import { noBytes, type Operation, type OperationResult } from "./messages.js";
import {
  compareVersions,
  type Header,
  headerText,
  newestStamp,
  type Stamp,
  stampOf,
  tagOf,
  versionText,
} from "./records.js";
import { reset } from "./reset.js";
import type { NodeParts } from "./settings.js";
import { type Scope, Turns, wholeFile } from "./turns.js";

/** Blocks of one call that are read or written concurrently. */
const blocksAtOnce = 8;

/** How often `sync` brings copies up to date that are reported behind meanwhile. */
const syncTriesMax = 3;

export interface Outcome {
  readonly result: OperationResult;
  readonly bytes: Uint8Array;
}

/** The part of a call in one block. */
interface Piece {
  readonly index: number;
  /** The offset in the block. */
  readonly from: number;
  readonly bytes: Uint8Array;
}

/**
 * The primary of one file, for one tenure of its lease. It serves once the reset is done, and until a change
 * fails to reach a majority: the outcome of the change is then unknown, and the next reset settles it.
 *
 * A read is answered only if the lease still runs when the blocks have been read, so that no later primary
 * has served by then. A change needs no such check: a majority has promised each later primary to refuse this
 * epoch.
 */
export class Primary {
  readonly path: string;
  readonly epoch: bigint;
  readonly copies: Copies;
  usedAtMs: number;
  readonly #parts: NodeParts;
  readonly #lease: Lease;
  readonly #turns = new Turns();
  #sequence = 0;
  #header: Header | undefined;
  /** The stamp of the last change that a majority has. */
  #newest: Stamp | undefined;
  #isOver = false;

  constructor(parts: NodeParts, lease: Lease, path: string) {
    this.#parts = parts;
    this.#lease = lease;
    this.path = path;
    this.epoch = lease.token;
    this.copies = new Copies(parts, path, lease.token);
    this.usedAtMs = parts.world.clock.monotonicMs();
  }

  get isIdle(): boolean {
    return this.#turns.isIdle;
  }

  get isOver(): boolean {
    if (!this.#isOver && (this.copies.superseded || this.#lease.remaining() === 0)) void this.end();
    return this.#isOver;
  }

  /** Must resolve before anything is served. */
  async begin(): Promise<void> {
    const time = (): (() => number) => this.#timeLeft(this.#parts.settings.operationTimeoutMs);
    await reset(this.#parts, this.copies, time);
    const { header } = await this.#parts.replica.meta(this.path);
    this.#header = header;
    if (header === undefined) return;
    this.#newest = newestStamp(header, (await this.#parts.replica.tags(this.path)).values());
    await this.#cut(time());
  }

  /** Releases the lease. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.copies.end();
    await this.#lease.release();
  }

  /** @throws TenureOver if the operation was not begun. */
  async run(operation: Operation, bytes: Uint8Array, timeoutMs: number): Promise<Outcome> {
    this.usedAtMs = this.#parts.world.clock.monotonicMs();
    const left = this.#timeLeft(Math.min(timeoutMs, this.#parts.settings.operationTimeoutMs));
    if (operation.kind === "write" && !this.#extends(operation.offset + bytes.length)) {
      const done = await this.#inTurn(this.#scopeOf(operation.offset, bytes.length, true), left, async () => {
        // The file was truncated while this operation waited.
        if (this.#extends(operation.offset + bytes.length)) return undefined;
        return this.#write(operation.offset, bytes, left);
      });
      if (done !== undefined) return done;
    }
    if (operation.kind === "read") {
      const { offset, length } = operation;
      return this.#inTurn(this.#scopeOf(offset, length, false), left, () => this.#read(offset, length));
    }
    if (operation.kind === "stat")
      return this.#inTurn({ from: 0, to: 0, changes: false }, left, async () => this.#certain(noBytes));
    if (operation.kind === "sync") return this.#sync(operation.lacks, left);
    return this.#inTurn(wholeFile, left, () => this.#alone(operation, bytes, left));
  }

  /** Runs an operation that excludes all others. */
  #alone(operation: Operation, bytes: Uint8Array, left: () => number): Promise<Outcome> {
    switch (operation.kind) {
      case "open":
        return this.#open(operation.create, left);
      case "append":
        checkRange(this.#stat().size, bytes.length);
        return this.#write(this.#stat().size, bytes, left);
      case "write":
        return this.#write(operation.offset, bytes, left);
      case "truncate":
        return this.#truncate(operation.size, left);
      case "remove":
        return this.#remove(operation.ifVersion, left);
      default:
        throw new LeaseholdError("UNSUPPORTED", `${operation.kind} is not an operation on files`);
    }
  }

  async #inTurn<T>(scope: Scope, left: () => number, operation: () => Promise<T>): Promise<T> {
    return this.#turns.run(scope, async () => {
      if (this.isOver) throw new TenureOver();
      if (left() === 0)
        throw new LeaseholdError("NO_QUORUM", `timed out: other operations were using ${this.path}`);
      try {
        return await operation();
      } catch (error) {
        // A missing file is an answer that must be true, too.
        if (isLeaseholdError(error, "FILE_NOT_FOUND", "FILE_EXISTS", "FILE_CHANGED")) this.#assertHeld();
        throw error;
      }
    });
  }

  async #open(create: (Operation & { kind: "open" })["create"], left: () => number): Promise<Outcome> {
    const exists = this.#header?.exists === true;
    if (!exists && create === "never") throw notFound(this.path);
    if (exists && create === "always")
      throw new LeaseholdError("FILE_EXISTS", `there is a file ${JSON.stringify(this.path)} already`);
    if (!exists || create === "replace") {
      const { blockSize } = this.#parts.settings;
      await this.#setHeader({ exists: true, size: 0, empties: true, blockSize }, left);
      return this.#done();
    }
    return this.#certain(noBytes);
  }

  async #read(offset: number, length: number): Promise<Outcome> {
    const { size } = this.#stat();
    const bytes = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
    await forEachOf(this.#pieces(offset, bytes), blocksAtOnce, async ({ index, from, bytes: into }) => {
      const block = await this.copies.readHere(index);
      if (block !== undefined) into.set(block.bytes.subarray(from, from + into.length));
    });
    return this.#certain(bytes);
  }

  async #write(offset: number, bytes: Uint8Array, left: () => number): Promise<Outcome> {
    const { size } = this.#stat();
    if (bytes.length > 0) {
      if (!(await this.#parts.replica.hasRoom(bytes.length)))
        throw new LeaseholdError("STORE_FULL", `node ${this.#parts.node} has no room`);
      const pieces = this.#pieces(offset, bytes).map((piece) => ({
        ...piece,
        stamp: this.#nextStamp(
          Math.max(size, piece.index * this.#blockSize + piece.from + piece.bytes.length),
        ),
      }));
      await forEachOf(pieces, blocksAtOnce, async ({ index, from, bytes: part, stamp }) => {
        await this.#setBlock(index, stamp, await this.#merged(index, from, part), true, left);
      });
    }
    return { result: { ...this.#result(), offset }, bytes: noBytes };
  }

  /** The block with this part written over it. */
  async #merged(index: number, from: number, part: Uint8Array): Promise<Uint8Array> {
    if (part.length === this.#blockSize) return part;
    const before = (await this.copies.readHere(index))?.bytes ?? noBytes;
    if (from === 0 && part.length >= before.length) return part;
    const merged = new Uint8Array(Math.max(before.length, from + part.length));
    merged.set(before);
    merged.set(part, from);
    return merged;
  }

  async #truncate(size: number, left: () => number): Promise<Outcome> {
    if (this.#stat().size !== size) {
      const { blockSize } = this.#header!;
      await this.#setHeader({ exists: true, size, empties: size === 0, blockSize }, left);
      // Blocks beyond the end would appear in a file that grows, until all are removed.
      await this.#settled(() => this.#cut(left));
      return this.#done();
    }
    return this.#certain(noBytes);
  }

  async #remove(ifVersion: string | null, left: () => number): Promise<Outcome> {
    const { version } = this.#stat();
    if (ifVersion !== null && ifVersion !== version)
      throw new LeaseholdError("FILE_CHANGED", `${this.path} has version ${version}, and not ${ifVersion}`);
    const result = this.#result();
    const { blockSize } = this.#header!;
    await this.#setHeader({ exists: false, size: 0, empties: true, blockSize }, left);
    return { result, bytes: noBytes };
  }

  async #sync(lacks: string | undefined, left: () => number): Promise<Outcome> {
    const { node, replica } = this.#parts;
    if (lacks === node && (await replica.meta(this.path)).base !== this.epoch) {
      void this.end();
      throw new TenureOver();
    }
    if (lacks !== undefined) this.copies.lackedBy(lacks);
    // A late duplicate of such a report makes a complete copy look behind once more.
    for (let tries = 0; tries < syncTriesMax && (tries === 0 || this.copies.behind.size > 0); tries += 1) {
      await Promise.all([...this.copies.behind].map((node) => this.copies.catchUp(node)));
      await this.copies.settled();
    }
    return this.#inTurn({ from: 0, to: 0, changes: false }, left, async () => {
      const { result, bytes } = this.#certain(noBytes);
      return { result: { ...result, nodes: this.#parts.nodes.length - this.copies.behind.size }, bytes };
    });
  }

  /** Removes the blocks beyond the end, so that a file that grows again reads as zeros there. */
  async #cut(left: () => number): Promise<void> {
    if (this.#header?.exists !== true || this.#newest === undefined) return;
    const { size } = this.#newest;
    const tags = await this.#parts.replica.tags(this.path);
    const beyond = [...tags].filter(([index, tag]) => {
      const start = index * this.#blockSize;
      return start >= size && tag !== undefined && stampOf(tag).size > start;
    });
    await forEachOf(beyond, blocksAtOnce, ([index]) =>
      this.#setBlock(index, this.#nextStamp(size), noBytes, false, left),
    );
    const last = Math.floor(size / this.#blockSize);
    const end = size % this.#blockSize;
    const block = end === 0 ? undefined : await this.copies.readHere(last);
    if (block === undefined || block.bytes.length <= end) return;
    await this.#setBlock(last, this.#nextStamp(size), block.bytes.slice(0, end), false, left);
  }

  async #setBlock(
    index: number,
    stamp: Stamp,
    bytes: Uint8Array,
    spare: boolean,
    left: () => number,
  ): Promise<void> {
    const { path } = this;
    const put = { path, epoch: String(this.epoch), index, tag: tagOf(stamp), spare };
    await this.#settled(() => this.copies.change("put", put, bytes, left));
    this.#commit(stamp);
  }

  async #setHeader(
    {
      exists,
      size,
      empties,
      blockSize,
    }: Pick<Header, "exists" | "size" | "blockSize"> & { empties: boolean },
    left: () => number,
  ): Promise<void> {
    const stamp = this.#nextStamp(size);
    const floor = empties || this.#header === undefined ? stamp : this.#header.floor;
    const header: Header = { ...stamp, exists, blockSize, floor };
    const ask = { path: this.path, epoch: String(this.epoch), header: headerText(header) };
    await this.#settled(() => this.copies.change("header", ask, noBytes, left));
    this.#header = header;
    this.#commit(stamp);
  }

  /** A change that no majority has confirmed ends the tenure: reads wait for the next reset. */
  async #settled(change: () => Promise<void>): Promise<void> {
    try {
      await change();
    } catch (cause) {
      void this.end();
      if (cause instanceof FileUncertainError) throw cause;
      const message = cause instanceof Error ? cause.message : String(cause);
      const told = `whether ${this.path} was changed is not known: ${message}`;
      throw new FileUncertainError(told, true, { cause });
    }
  }

  #timeLeft(timeoutMs: number): () => number {
    const { clock } = this.#parts.world;
    return timeLeft(() => clock.monotonicMs(), timeoutMs);
  }

  #commit(stamp: Stamp): void {
    if (this.#newest === undefined || compareVersions(stamp, this.#newest) > 0) this.#newest = stamp;
  }

  #nextStamp(size: number): Stamp {
    const { wallMs } = readBothClocks(this.#parts.world.clock);
    this.#sequence += 1;
    return { epoch: this.epoch, sequence: this.#sequence, size, modifiedMs: Math.max(0, Math.floor(wallMs)) };
  }

  /** The outcome of a completed change, whether or not the lease still runs. */
  #done(): Outcome {
    return { result: this.#result(), bytes: noBytes };
  }

  /** The outcome of a read that was correct while the lease ran. */
  #certain(bytes: Uint8Array): Outcome {
    const outcome = { result: this.#result(), bytes };
    this.#assertHeld();
    return outcome;
  }

  #assertHeld(): void {
    try {
      this.#lease.assertHeld(this.#parts.settings.leaseMarginMs);
    } catch (error) {
      if (isLeaseholdError(error, "LEASE_LOST")) throw new TenureOver();
      throw error;
    }
  }

  #result(): OperationResult {
    return { stat: this.#stat(), blockSize: this.#blockSize };
  }

  #stat(): FileStat {
    const { path } = this;
    if (this.#header?.exists !== true || this.#newest === undefined) throw notFound(path);
    const { size, modifiedMs } = this.#newest;
    return { path, size, version: versionText(this.#newest), modifiedMs };
  }

  get #blockSize(): number {
    return this.#header?.blockSize ?? this.#parts.settings.blockSize;
  }

  #extends(end: number): boolean {
    return this.#newest === undefined || end > this.#newest.size;
  }

  #scopeOf(offset: number, length: number, changes: boolean): Scope {
    const last = offset + Math.max(0, length - 1);
    return { from: Math.floor(offset / this.#blockSize), to: Math.floor(last / this.#blockSize), changes };
  }

  #pieces(offset: number, bytes: Uint8Array): Piece[] {
    const pieces: Piece[] = [];
    for (let at = 0; at < bytes.length;) {
      const index = Math.floor((offset + at) / this.#blockSize);
      const from = (offset + at) % this.#blockSize;
      const part = bytes.subarray(at, at + this.#blockSize - from);
      pieces.push({ index, from, bytes: part });
      at += part.length;
    }
    return pieces;
  }
}
