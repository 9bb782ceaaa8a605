import { Gate } from "../gate.js";
import { alignedBytes, type DirectFile } from "./direct-file.js";
import { decodeSuperblock, fillUnit, type Layout, lineIn, unitBytes } from "./layout.js";

/** The medium as units. One operation at a time: they share its buffers, and a dead device holds one thread only. */
export class BlockMedium {
  readonly name: string;
  readonly #file: DirectFile;
  readonly #gate = new Gate(1);
  readonly #unit = alignedBytes(unitBytes);
  #area: Uint8Array | undefined;

  constructor(name: string, file: DirectFile) {
    this.name = name;
    this.#file = file;
  }

  get sizeBytes(): number {
    return this.#file.sizeBytes;
  }

  get sectorBytes(): number {
    return this.#file.sectorBytes;
  }

  /** Runs alone. */
  alone<T>(run: () => Promise<T>): Promise<T> {
    return this.#gate.run(run);
  }

  async readLayout(): Promise<Layout | undefined> {
    return decodeSuperblock(await this.#readUnit(0));
  }

  /** The line at a position; `undefined` if nothing was ever written there. */
  async readLine(position: number): Promise<Uint8Array | undefined> {
    return lineIn(await this.#readUnit(position))?.slice();
  }

  writeLine(position: number, line: Uint8Array): Promise<void> {
    return this.#file.write(fillUnit(this.#unit, line), position);
  }

  /** So many units with one read; valid until the next. */
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
    return this.#file.close();
  }

  async #readUnit(position: number): Promise<Uint8Array> {
    await this.#file.read(this.#unit, position);
    return this.#unit;
  }
}
