import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Disk, DiskFile } from "./disk.js";

/** How long the free space is cached, ms: every write asks for it. */
const freeMs = 50;

/**
 * A disk in a directory of this machine.
 * @param synced called with the duration of each successful sync of a file, ms
 */
export function nodeDisk(root: string, synced?: (tookMs: number) => void): Disk {
  const at = (name: string): string => join(root, name);
  let free = { bytes: Promise.resolve(0), untilMs: -Infinity };
  return {
    open: async (name) => {
      const handle = await open(at(name), constants.O_RDWR | constants.O_CREAT, 0o600);
      return new NodeFile(handle, synced);
    },
    names: (folder) => unlessMissing(readdir(at(folder)), []),
    makeFolder: async (folder) => void (await mkdir(at(folder), { recursive: true, mode: 0o700 })),
    rename: (from, to) => rename(at(from), at(to)),
    remove: (name) => rm(at(name), { force: true }),
    free: () => {
      const nowMs = performance.now();
      if (nowMs >= free.untilMs)
        free = { bytes: statfs(root).then(({ bavail, bsize }) => bavail * bsize), untilMs: nowMs + freeMs };
      return free.bytes;
    },
    syncFolder: async (folder) => {
      const handle = await open(at(folder), "r");
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    },
  };
}

async function unlessMissing<T>(found: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return otherwise;
    throw error;
  }
}

class NodeFile implements DiskFile {
  readonly #handle: FileHandle;
  readonly #synced: ((tookMs: number) => void) | undefined;

  constructor(handle: FileHandle, synced: ((tookMs: number) => void) | undefined) {
    this.#handle = handle;
    this.#synced = synced;
  }

  async read(bytes: Uint8Array, position: number): Promise<number> {
    let filled = 0;
    while (filled < bytes.length) {
      const { bytesRead } = await this.#handle.read(bytes, filled, bytes.length - filled, position + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return filled;
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    for (let written = 0; written < bytes.length;) {
      const left = bytes.length - written;
      written += (await this.#handle.write(bytes, written, left, position + written)).bytesWritten;
    }
  }

  async sync(): Promise<void> {
    const begunMs = performance.now();
    await this.#handle.datasync();
    this.#synced?.(performance.now() - begunMs);
  }

  truncate(bytes: number): Promise<void> {
    return this.#handle.truncate(bytes);
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
