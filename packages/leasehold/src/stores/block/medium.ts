import { ThreadLimiter } from "../common/thread-limiter.js";
import { alignedBytes } from "./direct-file.js";
import { decodeSuperblock, fillSectors, type Layout, envelopeIn, unitBytes } from "./layout.js";

/** A device or a file without caches: a {@link DirectFile}. */
export interface BlockFile {
  readonly sectorBytes: number;
  readonly sizeBytes: number;
  read(into: Uint8Array, position: number): Promise<void>;
  write(from: Uint8Array, position: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * The medium, divided into units. It runs one operation at a time: operations share its buffers, and a dead
 * device blocks only one thread.
 */
export class BlockMedium {
  readonly name: string;
  readonly #file: BlockFile;
  readonly #limiter = new ThreadLimiter({ atOnceMax: 1 });
  readonly #unit = alignedBytes(unitBytes);
  #area: Uint8Array | undefined;

  constructor(name: string, file: BlockFile) {
    this.name = name;
    this.#file = file;
  }

  get sizeBytes(): number {
    return this.#file.sizeBytes;
  }

  get sectorBytes(): number {
    return this.#file.sectorBytes;
  }

  /** Runs one operation exclusively. */
  alone<T>(run: () => Promise<T>): Promise<T> {
    return this.#limiter.run(run);
  }

  async readLayout(): Promise<Layout | undefined> {
    return decodeSuperblock(await this.#readUnit(0));
  }

  /** Reads one sector. The result is valid until the next operation. */
  async readSector(position: number): Promise<Uint8Array> {
    const sector = this.#unit.subarray(0, this.sectorBytes);
    await this.#file.read(sector, position);
    return sector;
  }

  /** The envelope in a sector; `undefined` if the sector was never written. */
  async readEnvelope(position: number): Promise<Uint8Array | undefined> {
    return envelopeIn(await this.readSector(position))?.slice();
  }

  writeEnvelope(position: number, envelope: Uint8Array): Promise<void> {
    return this.#file.write(fillSectors(this.#unit, envelope, this.sectorBytes), position);
  }

  /** Reads `count` units at once. The result is valid until the next read. */
  async readUnits(position: number, count: number): Promise<readonly Uint8Array[]> {
    const bytes = unitBytes * count;
    if (this.#area?.length !== bytes) this.#area = alignedBytes(bytes);
    const area = this.#area;
    await this.#file.read(area, position);
    return Array.from({ length: count }, (_, index) =>
      area.subarray(index * unitBytes, (index + 1) * unitBytes),
    );
  }

  close(): Promise<void> {
    this.#limiter.close();
    return this.#file.close();
  }

  async #readUnit(position: number): Promise<Uint8Array> {
    await this.#file.read(this.#unit, position);
    return this.#unit;
  }
}
