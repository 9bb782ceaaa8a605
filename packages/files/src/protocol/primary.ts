import { LeaseholdError, type Lease } from "leasehold/common";
import type { FileStat } from "../types.js";
import { forEachOf } from "./each.js";
import { checkRange, isLeaseholdError, notFound, TenureOver } from "./failures.js";
import { noBytes, type Operation, type OperationResult } from "./messages.js";
import { stampOf, versionText } from "./records.js";
import type { Outcome, Serving } from "./serving.js";
import type { NodeParts } from "./settings.js";
import { Tenure } from "./tenure.js";
import { type Scope, Turns, wholeFile } from "./turns.js";

/** Blocks of one call that are read or written concurrently. */
const blocksAtOnce = 8;

/** The part of a call that falls in one block. */
interface Piece {
  readonly index: number;
  /** The offset in the block. */
  readonly from: number;
  readonly bytes: Uint8Array;
}

/** The primary of one file that is written in place, for one tenure of its lease. */
export class Primary implements Serving {
  readonly path: string;
  readonly tenure: Tenure;
  readonly #parts: NodeParts;
  readonly #turns = new Turns();

  constructor(parts: NodeParts, lease: Lease, path: string) {
    this.#parts = parts;
    this.path = path;
    this.tenure = new Tenure(parts, lease, path);
  }

  get isIdle(): boolean {
    return this.#turns.isIdle;
  }

  async begin(): Promise<void> {
    await this.tenure.begin();
    await this.#cut(this.tenure.operationTime());
  }

  async run(operation: Operation, bytes: Uint8Array, timeoutMs: number): Promise<Outcome<OperationResult>> {
    this.tenure.use();
    const left = this.tenure.operationTime(timeoutMs);
    if (operation.kind === "write" && !this.#extends(operation.offset + bytes.length)) {
      const done = await this.#inTurn(
        this.#scopeOf(operation.offset, bytes.length, true),
        left,
        operation,
        async () => {
          // The file was truncated while this operation waited.
          if (this.#extends(operation.offset + bytes.length)) return undefined;
          return this.#write(operation.offset, bytes, left);
        },
      );
      if (done !== undefined) return done;
    }
    if (operation.kind === "read") {
      const { offset, length } = operation;
      const scope = this.#scopeOf(offset, length, false);
      return this.#inTurn(scope, left, operation, () => this.#read(offset, length));
    }
    if (operation.kind === "stat")
      return this.#inTurn({ from: 0, to: 0, changes: false }, left, operation, async () =>
        this.#certain(noBytes),
      );
    if (operation.kind === "sync") return this.#sync(operation, left);
    return this.#inTurn(wholeFile, left, operation, () => this.#alone(operation, bytes, left));
  }

  /** Runs an operation that excludes all others. */
  #alone(operation: Operation, bytes: Uint8Array, left: () => number): Promise<Outcome<OperationResult>> {
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
      case "seal":
        return this.#seal(operation.ifVersion, left);
      default:
        throw new LeaseholdError("UNSUPPORTED", `${operation.kind} is not an operation on files`);
    }
  }

  async #inTurn<T>(
    scope: Scope,
    left: () => number,
    operation: Operation,
    work: () => Promise<T>,
  ): Promise<T> {
    return this.#turns.run(scope, async () => {
      if (this.tenure.isOver) throw new TenureOver();
      if (left() === 0)
        throw new LeaseholdError("NO_QUORUM", `timed out: other operations were using ${this.path}`);
      try {
        this.#refuseSealed(operation);
        return await work();
      } catch (error) {
        // "No such file" is an answer too, so it must be true.
        if (isLeaseholdError(error, "FILE_NOT_FOUND", "FILE_EXISTS", "FILE_CHANGED"))
          this.tenure.assertHeld();
        throw error;
      }
    });
  }

  /** Callers that looked up the name's content earlier must look it up again. */
  #refuseSealed(operation: Operation): void {
    const isMeant = operation.kind === "seal" || ("sealed" in operation && operation.sealed === true);
    if (this.tenure.header?.isSealed === true && !isMeant)
      throw new LeaseholdError("FILE_CHANGED", `${this.path} is sealed`);
  }

  async #open(
    create: (Operation & { kind: "open" })["create"],
    left: () => number,
  ): Promise<Outcome<OperationResult>> {
    const exists = this.tenure.header?.exists === true;
    if (!exists && create === "never") throw notFound(this.path);
    if (exists && create === "always")
      throw new LeaseholdError("FILE_EXISTS", `there is a file ${JSON.stringify(this.path)} already`);
    if (!exists || create === "replace") {
      const { blockSize } = this.#parts.settings;
      await this.tenure.setHeader({ exists: true, size: 0, floor: "here", blockSize }, left);
      return this.#done();
    }
    return this.#certain(noBytes);
  }

  async #read(offset: number, length: number): Promise<Outcome<OperationResult>> {
    const { size } = this.#stat();
    const bytes = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
    await forEachOf(this.#pieces(offset, bytes), blocksAtOnce, async ({ index, from, bytes: into }) => {
      const block = await this.tenure.copies.readHere(index);
      if (block !== undefined) into.set(block.bytes.subarray(from, from + into.length));
    });
    return this.#certain(bytes);
  }

  async #write(offset: number, bytes: Uint8Array, left: () => number): Promise<Outcome<OperationResult>> {
    const { size } = this.#stat();
    if (bytes.length > 0) {
      if (!(await this.#parts.replica.hasRoom(bytes.length)))
        throw new LeaseholdError("STORE_FULL", `node ${this.#parts.node} has no room`);
      const pieces = this.#pieces(offset, bytes).map((piece) => ({
        ...piece,
        stamp: this.tenure.nextStamp(
          Math.max(size, piece.index * this.#blockSize + piece.from + piece.bytes.length),
        ),
      }));
      await forEachOf(pieces, blocksAtOnce, async ({ index, from, bytes: part, stamp }) => {
        await this.tenure.setBlock(index, stamp, await this.#merged(index, from, part), true, left);
      });
    }
    return { result: { ...this.#result(), offset }, bytes: noBytes };
  }

  /** The block with this part written over it. */
  async #merged(index: number, from: number, part: Uint8Array): Promise<Uint8Array> {
    if (part.length === this.#blockSize) return part;
    const before = (await this.tenure.copies.readHere(index))?.bytes ?? noBytes;
    if (from === 0 && part.length >= before.length) return part;
    const merged = new Uint8Array(Math.max(before.length, from + part.length));
    merged.set(before);
    merged.set(part, from);
    return merged;
  }

  async #truncate(size: number, left: () => number): Promise<Outcome<OperationResult>> {
    if (this.#stat().size !== size) {
      const { blockSize } = this.tenure.header!;
      await this.tenure.setHeader(
        { exists: true, size, blockSize, ...(size === 0 && { floor: "here" as const }) },
        left,
      );
      // Blocks beyond the end would reappear when the file grows, so all are removed first.
      await this.tenure.settled(() => this.#cut(left));
      return this.#done();
    }
    return this.#certain(noBytes);
  }

  async #remove(ifVersion: string | null, left: () => number): Promise<Outcome<OperationResult>> {
    const { version } = this.#stat();
    if (ifVersion !== null && ifVersion !== version)
      throw new LeaseholdError("FILE_CHANGED", `${this.path} has version ${version}, and not ${ifVersion}`);
    const result = this.#result();
    const { blockSize } = this.tenure.header!;
    await this.tenure.setHeader({ exists: false, size: 0, floor: "here", blockSize }, left);
    return { result, bytes: noBytes };
  }

  /** No write is accepted from now on: the content's name may be moved, shared or removed. */
  async #seal(ifVersion: string | null, left: () => number): Promise<Outcome<OperationResult>> {
    const { version, size } = this.#stat();
    if (ifVersion !== null && ifVersion !== version)
      throw new LeaseholdError("FILE_CHANGED", `the file has version ${version}, and not ${ifVersion}`);
    const result = this.#result();
    const { blockSize, isSealed } = this.tenure.header!;
    if (isSealed !== true)
      await this.tenure.setHeader({ exists: true, size, blockSize, isSealed: true }, left);
    return { result, bytes: noBytes };
  }

  async #sync(
    operation: Operation & { kind: "sync" },
    left: () => number,
  ): Promise<Outcome<OperationResult>> {
    await this.tenure.completeCopies(operation.lacks);
    return this.#inTurn({ from: 0, to: 0, changes: false }, left, operation, async () => {
      const { result, bytes } = this.#certain(noBytes);
      return {
        result: { ...result, nodes: this.#parts.nodes.length - this.tenure.copies.behind.size },
        bytes,
      };
    });
  }

  /** Removes the blocks beyond the end, so that a file that grows again reads as zeros there. */
  async #cut(left: () => number): Promise<void> {
    if (this.tenure.header?.exists !== true || this.tenure.newest === undefined) return;
    const { size } = this.tenure.newest;
    const tags = await this.#parts.replica.tags(this.path);
    const beyond = [...tags].filter(([index, tag]) => {
      const start = index * this.#blockSize;
      return start >= size && tag !== undefined && stampOf(tag).size > start;
    });
    await forEachOf(beyond, blocksAtOnce, ([index]) =>
      this.tenure.setBlock(index, this.tenure.nextStamp(size), noBytes, false, left),
    );
    const last = Math.floor(size / this.#blockSize);
    const end = size % this.#blockSize;
    const block = end === 0 ? undefined : await this.tenure.copies.readHere(last);
    if (block === undefined || block.bytes.length <= end) return;
    await this.tenure.setBlock(last, this.tenure.nextStamp(size), block.bytes.slice(0, end), false, left);
  }

  /** The outcome of a completed change. It holds whether or not the lease still runs. */
  #done(): Outcome<OperationResult> {
    return { result: this.#result(), bytes: noBytes };
  }

  /** The outcome of a read, valid if the lease ran throughout. */
  #certain(bytes: Uint8Array): Outcome<OperationResult> {
    const outcome = { result: this.#result(), bytes };
    this.tenure.assertHeld();
    return outcome;
  }

  #result(): OperationResult {
    return { stat: this.#stat(), blockSize: this.#blockSize };
  }

  #stat(): FileStat {
    const { path } = this;
    if (this.tenure.header?.exists !== true || this.tenure.newest === undefined) throw notFound(path);
    const { size, modifiedMs } = this.tenure.newest;
    return { path, size, version: versionText(this.tenure.newest), modifiedMs };
  }

  get #blockSize(): number {
    return this.tenure.header?.blockSize ?? this.#parts.settings.blockSize;
  }

  #extends(end: number): boolean {
    return this.tenure.newest === undefined || end > this.tenure.newest.size;
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
