import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { LeaseholdError } from "../../lease/errors.js";
import { errnoOf } from "../common/io-error.js";

/** The granularity of memory for direct I/O: more than the alignment that any device requires. */
const wasmPageBytes = 65_536;

/** Node always has it, but only the browser types declare it. */
declare const WebAssembly: {
  readonly Memory: new (pages: { readonly initial: number }) => { readonly buffer: ArrayBuffer };
};

/** Sector sizes of devices. */
const sectorSizes = [512, 4_096] as const;

/**
 * Memory for direct I/O, which has to begin at a page boundary. WebAssembly's memory does; `Buffer.alloc`'s
 * does not.
 */
export function alignedBytes(length: number): Uint8Array {
  const { buffer } = new WebAssembly.Memory({ initial: Math.ceil(length / wasmPageBytes) });
  return new Uint8Array(buffer, 0, length);
}

/**
 * A device or a file with direct I/O, which bypasses all caches: reads return what another machine has
 * written.
 */
export class DirectFile {
  readonly sectorBytes: number;
  readonly sizeBytes: number;
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle, sectorBytes: number, sizeBytes: number) {
    this.#handle = handle;
    this.sectorBytes = sectorBytes;
    this.sizeBytes = sizeBytes;
  }

  /** @throws LeaseholdError `STORE_UNFIT` if there is no direct I/O; errors of the file system */
  static async open(path: string): Promise<DirectFile> {
    const handle = await openDirect(path);
    try {
      const sizeBytes = await sizeOf(handle, path);
      return new DirectFile(handle, await findSectorBytes(handle, path), sizeBytes);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Fills `into`, which was created by {@link alignedBytes}. */
  async read(into: Uint8Array, position: number): Promise<void> {
    const { bytesRead } = await this.#handle.read(into, 0, into.length, position);
    if (bytesRead !== into.length) {
      throw new LeaseholdError("STORE_UNAVAILABLE", `it ends at byte ${position + bytesRead}; it was longer`);
    }
  }

  async write(from: Uint8Array, position: number): Promise<void> {
    const { bytesWritten } = await this.#handle.write(from, 0, from.length, position);
    if (bytesWritten !== from.length) {
      throw new LeaseholdError("STORE_FULL", `it took ${bytesWritten} of ${from.length} bytes`);
    }
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

async function openDirect(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDWR | constants.O_DIRECT | constants.O_DSYNC);
  } catch (error) {
    if (errnoOf(error) !== "EINVAL") throw error;
    throw new LeaseholdError("STORE_UNFIT", `${path} cannot be opened past the caches (O_DIRECT)`);
  }
}

async function sizeOf(handle: FileHandle, path: string): Promise<number> {
  const stats = await handle.stat();
  if (stats.isFile()) return stats.size;
  if (!stats.isBlockDevice()) {
    throw new LeaseholdError("STORE_UNFIT", `${path} is neither a block device nor a file`);
  }
  // The numbers are packed as in Linux; the size is in units of 512 bytes, whatever the sector size.
  const major = (stats.rdev >> 8) & 0xfff;
  const minor = (stats.rdev & 0xff) | ((stats.rdev >> 12) & 0xf_ff00);
  return 512 * Number(await readFile(`/sys/dev/block/${major}:${minor}/size`, "utf8"));
}

/** The smallest unit of a read: devices refuse lengths that are not a multiple of the sector size. */
async function findSectorBytes(handle: FileHandle, path: string): Promise<number> {
  for (const bytes of sectorSizes) {
    try {
      await handle.read(alignedBytes(bytes), 0, bytes, bytes);
      return bytes;
    } catch (error) {
      if (errnoOf(error) !== "EINVAL") throw error;
    }
  }
  throw new LeaseholdError("STORE_UNFIT", `${path} refuses reads of ${sectorSizes.join(" and of ")} bytes`);
}
