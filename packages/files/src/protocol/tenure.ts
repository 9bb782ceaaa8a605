import { readBothClocks, timeLeft, type Lease } from "leasehold/common";
import { FileUncertainError } from "../uncertain.js";
import { Copies } from "./copies.js";
import { isLeaseholdError, TenureOver } from "./failures.js";
import { noBytes } from "./messages.js";
import { compareVersions, type Header, headerText, newestStamp, type Stamp, tagOf } from "./records.js";
import { reset } from "./reset.js";
import type { NodeParts } from "./settings.js";

/** How often the tenure catches up copies that fall behind meanwhile. */
const completionsMax = 3;

/**
 * A header that a primary writes. Blocks before `floor` are void. Default: the floor of the previous header.
 */
export interface NewHeader extends Pick<Header, "exists" | "size" | "blockSize"> {
  readonly isSealed?: boolean;
  readonly floor?: "here" | Pick<Stamp, "epoch" | "sequence">;
}

/**
 * One tenure of a primary: its lease, the reset before anything is served, and the changes that a majority
 * has.
 *
 * A change that fails to reach a majority ends the tenure, because its outcome is unknown until the next
 * reset settles it. A read is valid only if the lease still runs afterwards: then no later primary can have
 * served. A change needs no such check: a later primary first gets a majority to promise to refuse this
 * epoch.
 */
export class Tenure {
  readonly path: string;
  readonly epoch: bigint;
  readonly copies: Copies;
  usedAtMs: number;
  readonly #parts: NodeParts;
  readonly #lease: Lease;
  #sequence = 0;
  #header: Header | undefined;
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

  get header(): Header | undefined {
    return this.#header;
  }

  /** The stamp of the last change that is at a majority. */
  get newest(): Stamp | undefined {
    return this.#newest;
  }

  get isOver(): boolean {
    if (!this.#isOver && (this.copies.superseded || this.#lease.remaining() === 0)) void this.end();
    return this.#isOver;
  }

  /** Must resolve before anything is served. */
  async begin(): Promise<void> {
    await reset(this.#parts, this.copies, () => this.operationTime());
    const { header } = await this.#parts.replica.meta(this.path);
    this.#header = header;
    if (header === undefined) return;
    this.#newest = newestStamp(header, (await this.#parts.replica.tags(this.path)).values());
  }

  /** Releases the lease. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.copies.end();
    await this.#lease.release();
  }

  use(): void {
    this.usedAtMs = this.#parts.world.clock.monotonicMs();
  }

  /** The time limit of an operation that begins now. */
  operationTime(atMost = Infinity): () => number {
    const { clock } = this.#parts.world;
    const { operationTimeoutMs } = this.#parts.settings;
    return timeLeft(() => clock.monotonicMs(), Math.min(operationTimeoutMs, atMost));
  }

  nextStamp(size: number): Stamp {
    const { wallMs } = readBothClocks(this.#parts.world.clock);
    this.#sequence += 1;
    return { epoch: this.epoch, sequence: this.#sequence, size, modifiedMs: Math.max(0, Math.floor(wallMs)) };
  }

  async setBlock(
    index: number,
    stamp: Stamp,
    bytes: Uint8Array,
    spare: boolean,
    left: () => number,
  ): Promise<void> {
    const { path } = this;
    const put = { path, epoch: String(this.epoch), index, tag: tagOf(stamp), spare };
    await this.settled(() => this.copies.change("put", put, bytes, left));
    this.#commit(stamp);
  }

  async setHeader(
    { exists, size, blockSize, isSealed = false, floor = this.#header?.floor ?? "here" }: NewHeader,
    left: () => number,
  ): Promise<void> {
    const stamp = this.nextStamp(size);
    const header: Header = { ...stamp, exists, blockSize, isSealed, floor: floor === "here" ? stamp : floor };
    const ask = { path: this.path, epoch: String(this.epoch), header: headerText(header) };
    await this.settled(() => this.copies.change("header", ask, noBytes, left));
    this.#header = header;
    this.#commit(stamp);
  }

  /** A change that no majority has confirmed ends the tenure: reads wait for the next reset. */
  async settled(change: () => Promise<void>): Promise<void> {
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

  /**
   * Completes the copies that are behind, at every node that can be reached.
   * @param lacks a node that does not know the state of its copy
   */
  async completeCopies(lacks: string | undefined): Promise<void> {
    const { node, replica } = this.#parts;
    if (lacks === node && (await replica.meta(this.path)).base !== this.epoch) {
      void this.end();
      throw new TenureOver();
    }
    if (lacks !== undefined) this.copies.lackedBy(lacks);
    // Because of a late duplicate of such a report, a complete copy can look behind once more.
    for (let tries = 0; tries < completionsMax && (tries === 0 || this.copies.behind.size > 0); tries += 1) {
      await Promise.all([...this.copies.behind].map((each) => this.copies.catchUp(each)));
      await this.copies.settled();
    }
  }

  /** @throws TenureOver if the data read may be stale. */
  assertHeld(): void {
    try {
      this.#lease.assertHeld(this.#parts.settings.leaseMarginMs);
    } catch (error) {
      if (isLeaseholdError(error, "LEASE_LOST")) throw new TenureOver();
      throw error;
    }
  }

  #commit(stamp: Stamp): void {
    if (this.#newest === undefined || compareVersions(stamp, this.#newest) > 0) this.#newest = stamp;
  }
}
