import fs, { constants } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errnoOf } from "../common/io-error.js";

/** Descriptors instead of the handles of `node:fs/promises`, which cost more than the calls. */
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
 * What a missing file, or a directory that was renamed while it was used, looks like. On a file server also
 * `ESTALE`.
 */
export function isMissing(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOENT" || errno === "ESTALE";
}

/**
 * What a rename says that would have replaced a directory with something in it: which of the two depends on
 * the system.
 */
export function isOccupied(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOTEMPTY" || errno === "EEXIST";
}

/** Room for the content of most files; longer ones get what they may have. */
const readBytes = 4_096;

/** Lets a call to the file system begin. Each of them occupies one of Node's threads until it ends. */
export interface CallGate {
  run<T>(call: () => Promise<T>): Promise<T>;
}

/** The calls to the file system that a store consists of. */
export class Files {
  readonly #gate: CallGate;
  /**
   * By directory: the sync that is under way, and the one that begins after it for all who have asked
   * since.
   */
  readonly #syncing = new Map<string, Promise<void>>();
  readonly #syncingNext = new Map<string, Promise<void>>();

  constructor(gate: CallGate) {
    this.#gate = gate;
  }

  /**
   * Makes a file that must not exist, and sees it to the disk, together with the names that these
   * directories have then: at the same time, as a disk takes no longer for all of them than for one.
   */
  async writeSynced(path: string, content: Uint8Array, directories: readonly string[] = []): Promise<void> {
    await this.#using(path, "wx", async (file) => {
      let written = 0;
      while (written < content.length) {
        const from = written;
        written += await this.#gate.run(() => write(file, content, from));
      }
      const names = directories.map((directory) => this.syncDirectory(directory));
      await allEnded([this.#gate.run(() => fsync(file)), ...names]);
    });
  }

  /** Sees to the disk which names a directory has. */
  syncDirectory(path: string): Promise<void> {
    return this.#using(path, constants.O_RDONLY | constants.O_DIRECTORY, (directory) =>
      this.#gate.run(() => fsync(directory)),
    );
  }

  /** The same for several, at the same time. */
  syncDirectories(paths: readonly string[]): Promise<void> {
    return allEnded(paths.map((path) => this.syncDirectory(path)));
  }

  /**
   * The same for a directory in which many change names at the same time: one sync serves all who asked
   * before it began.
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
   * True if the directory is there. Opening, other than looking, makes the client of a file server ask the
   * server, also for the names in it that it took for missing.
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
      return await this.#gate.run(() => readDirectory(path));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** The content of a file up to so many bytes; `undefined` if it is missing. */
  async contentOf(path: string, bytesMax: number): Promise<Uint8Array | undefined> {
    try {
      return await this.#using(path, "r", async (file) => {
        let content = Buffer.allocUnsafe(Math.min(bytesMax, readBytes));
        let length = 0;
        for (;;) {
          const [into, from] = [content, length];
          const bytes = await this.#gate.run(() => read(file, into, from));
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
    return this.#gate.run(() => makeDirectory(path));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#gate.run(() => renameEntry(from, to));
  }

  /**
   * Makes a directory with all that is in it appear at once, unless one is there already: builds it beside,
   * and renames it. A rename onto a directory that is not empty fails on every file system. False if one is
   * there, or the place is gone.
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
   * Removes what {@link appear} has left. It gets another name first: its maker, if it has only been
   * paused, must not find it half emptied and make it appear.
   */
  async discard(place: string, building: string): Promise<void> {
    const dead = join(place, `old-${globalThis.crypto.randomUUID()}`);
    await ignoringFailure(async () => {
      await this.rename(building, dead);
      await this.#gate.run(() => rm(dead, { recursive: true, force: true }));
    });
  }

  /** For cleaning up. */
  async remove(path: string): Promise<void> {
    await ignoringFailure(() => this.#gate.run(() => unlink(path)));
  }

  #beginSync(path: string): Promise<void> {
    const syncing = this.syncDirectory(path).finally(() => {
      if (this.#syncing.get(path) === syncing) this.#syncing.delete(path);
    });
    this.#syncing.set(path, syncing);
    return syncing;
  }

  async #using<T>(path: string, flags: string | number, use: (file: number) => Promise<T>): Promise<T> {
    const file = await this.#gate.run(() => open(path, flags));
    try {
      return await use(file);
    } finally {
      // Nobody waits for it: what was to be on the disk is there.
      void ignoringFailure(() => this.#gate.run(() => close(file)));
    }
  }
}

/** Resolves when all have; rejects when all have ended and one was rejected. */
export async function allEnded(calls: readonly Promise<void>[]): Promise<void> {
  for (const ended of await Promise.allSettled(calls)) if (ended.status === "rejected") throw ended.reason;
}

/** One call after the other, as they come: for the few that are made while a store is opened. */
export const ungated = new Files({ run: (call) => call() });

/** For cleaning up: what stays is found again by the next who cleans. */
export async function ignoringFailure(run: () => Promise<unknown>): Promise<void> {
  try {
    await run();
  } catch {
    // Left for the next.
  }
}
