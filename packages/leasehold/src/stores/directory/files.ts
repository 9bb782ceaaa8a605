import fs, { constants } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errnoOf } from "../common/io-error.js";

/** Uses descriptors, because the handles of `node:fs/promises` cost more than the calls themselves. */
const close = promisify(fs.close);
const fsync = promisify(fs.fsync);
const makeDirectory = promisify(fs.mkdir) as (path: string) => Promise<void>;
const open = promisify(fs.open) as (path: string, flags: string | number) => Promise<number>;
const readDirectory = promisify(fs.readdir);
const renameEntry = promisify(fs.rename);
const unlink = promisify(fs.unlink);

function write(file: number, content: Uint8Array, from: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.write(file, content, from, content.length - from, from, (error, bytes) =>
      error ? reject(error) : resolve(bytes),
    );
  });
}

function read(file: number, content: Uint8Array, from: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.read(file, content, from, content.length - from, from, (error, bytes) =>
      error ? reject(error) : resolve(bytes),
    );
  });
}

/**
 * Whether a file is missing or a directory was renamed while in use, for which a file server may answer
 * `ESTALE`.
 */
export function isMissing(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOENT" || errno === "ESTALE";
}

/**
 * Whether a rename failed because it would have replaced a non-empty directory: the error depends on the
 * system.
 */
export function isOccupied(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOTEMPTY" || errno === "EEXIST";
}

/** The size of a buffer for the content of most files; longer content gets a second buffer. */
const readBytes = 4_096;

/** Limits calls to the file system, each of which occupies one of Node's threads until it ends. */
export interface CallLimiter {
  run<T>(call: () => Promise<T>): Promise<T>;
}

/** The file-system calls of a store. */
export class Files {
  readonly #limiter: CallLimiter;
  /**
   * For each directory, the running sync and the next one, which serves all callers since the running one
   * began.
   */
  readonly #syncing = new Map<string, Promise<void>>();
  readonly #syncingNext = new Map<string, Promise<void>>();

  constructor(limiter: CallLimiter) {
    this.#limiter = limiter;
  }

  /**
   * Creates a file that must not exist, and syncs it and these directories concurrently, because that takes a
   * disk no longer than a single sync.
   */
  async writeSynced(path: string, content: Uint8Array, directories: readonly string[] = []): Promise<void> {
    await this.#using(path, "wx", async (file) => {
      let written = 0;
      while (written < content.length) {
        const from = written;
        written += await this.#limiter.run(() => write(file, content, from));
      }
      const names = directories.map((directory) => this.syncDirectory(directory));
      await allEnded([this.#limiter.run(() => fsync(file)), ...names]);
    });
  }

  /** Syncs the names in a directory. */
  syncDirectory(path: string): Promise<void> {
    return this.#using(path, constants.O_RDONLY | constants.O_DIRECTORY, (directory) =>
      this.#limiter.run(() => fsync(directory)),
    );
  }

  /** The same for several directories, concurrently. */
  syncDirectories(paths: readonly string[]): Promise<void> {
    return allEnded(paths.map((path) => this.syncDirectory(path)));
  }

  /**
   * The same for a directory in which many names change at the same time: one sync serves all earlier
   * callers.
   */
  async syncDirectoryTogether(path: string): Promise<void> {
    const next = this.#syncingNext.get(path);
    if (next !== undefined) return next;
    const underWay = this.#syncing.get(path);
    if (underWay === undefined) return this.#beginSync(path);
    const begun = underWay
      .catch(() => undefined)
      .then(() => {
        this.#syncingNext.delete(path);
        return this.#beginSync(path);
      });
    this.#syncingNext.set(path, begun);
    return begun;
  }

  /**
   * Whether the directory exists. Unlike `stat`, opening it makes a file server's client query the server,
   * even for names that it has cached as missing.
   */
  async isThere(path: string): Promise<boolean> {
    try {
      await this.#using(path, constants.O_RDONLY | constants.O_DIRECTORY, async () => undefined);
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** The names in a directory; `undefined` if it is missing. */
  async namesIn(path: string): Promise<readonly string[] | undefined> {
    try {
      return await this.#limiter.run(() => readDirectory(path));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** The content of a file, up to `bytesMax`; `undefined` if it is missing. */
  async contentOf(path: string, bytesMax: number): Promise<Uint8Array | undefined> {
    try {
      return await this.#using(path, "r", async (file) => {
        let content = Buffer.allocUnsafe(Math.min(bytesMax, readBytes));
        let length = 0;
        for (;;) {
          const [into, from] = [content, length];
          const bytes = await this.#limiter.run(() => read(file, into, from));
          length += bytes;
          if (bytes === 0 || length === bytesMax) break;
          if (length === content.length) content = Buffer.concat([content], bytesMax);
        }
        return new Uint8Array(content.subarray(0, length));
      });
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  make(path: string): Promise<void> {
    return this.#limiter.run(() => makeDirectory(path));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#limiter.run(() => renameEntry(from, to));
  }

  /**
   * Creates a directory and its content atomically, unless it exists: builds it under another name and
   * renames it. Renaming onto a non-empty directory fails on every file system. Returns false if the
   * directory exists or its parent is gone.
   */
  async appear(place: string, name: string, build: (path: string) => Promise<void>): Promise<boolean> {
    const building = join(place, `new-${globalThis.crypto.randomUUID()}`);
    try {
      await this.make(building);
      await build(building);
      await this.rename(building, join(place, name));
      await this.syncDirectoryTogether(place);
      return true;
    } catch (error) {
      await this.discard(place, building);
      if (isOccupied(error) || isMissing(error)) return false;
      throw error;
    }
  }

  /**
   * Removes the leftovers of {@link appear}. They are renamed first: if their creator was only paused, it
   * must not put them in place half removed.
   */
  async discard(place: string, building: string): Promise<void> {
    const dead = join(place, `old-${globalThis.crypto.randomUUID()}`);
    await ignoringFailure(async () => {
      await this.rename(building, dead);
      await this.#limiter.run(() => rm(dead, { recursive: true, force: true }));
    });
  }

  /** For cleaning up. */
  async remove(path: string): Promise<void> {
    await ignoringFailure(() => this.#limiter.run(() => unlink(path)));
  }

  #beginSync(path: string): Promise<void> {
    const syncing = this.syncDirectory(path).finally(() => {
      if (this.#syncing.get(path) === syncing) this.#syncing.delete(path);
    });
    this.#syncing.set(path, syncing);
    return syncing;
  }

  async #using<T>(path: string, flags: string | number, use: (file: number) => Promise<T>): Promise<T> {
    const file = await this.#limiter.run(() => open(path, flags));
    try {
      return await use(file);
    } finally {
      // Not awaited: the content is already on the disk.
      void ignoringFailure(() => this.#limiter.run(() => close(file)));
    }
  }
}

/** Resolves when all have resolved; rejects when all have ended and at least one was rejected. */
export async function allEnded(calls: readonly Promise<void>[]): Promise<void> {
  for (const ended of await Promise.allSettled(calls)) if (ended.status === "rejected") throw ended.reason;
}

/** Without a limiter: for the few calls that open a store. */
export const ungated = new Files({ run: (call) => call() });

/** For cleaning up: the next cleaning finds the rest. */
export async function ignoringFailure(run: () => Promise<unknown>): Promise<void> {
  try {
    await run();
  } catch {
    // The next cleaning retries.
  }
}
