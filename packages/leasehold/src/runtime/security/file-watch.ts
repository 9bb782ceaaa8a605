import { stat } from "node:fs/promises";
import type { Timer, World } from "../../common/ports.js";
import { eventLog } from "../log-events.js";
import type { Logger } from "../logger.js";
import { type CertificateEnd, certificateSources } from "./certificate-ends.js";

/**
 * The poll interval of files, ms: a new certificate is in use after at most this time, and a check takes
 * microseconds.
 */
export const watchMs = 5_000;

export interface FileWatchOptions<T> {
  /** The files that `current` was read from; empty if there are none. */
  readonly paths: readonly string[];
  /** Reads and checks the files. If it throws, `current` stays unchanged. */
  read(): Promise<T>;
  /** The certificates in `current`, for metrics. */
  ends?(current: T): readonly CertificateEnd[];
  readonly world: World;
  readonly logger: Logger;
  readonly everyMs: number;
}

/** All open watches of this process, for {@link rereadFiles}. */
const open = new Set<{ look(): Promise<readonly string[]> }>();

/**
 * Rereads changed files immediately, for every watch of this process. A watch's logger gets its faults.
 *
 * @returns the paths that were read again and are in use.
 */
export async function rereadFiles(): Promise<readonly string[]> {
  return [...new Set((await Promise.all([...open].map((watch) => watch.look()))).flat())];
}

/**
 * The content of files, read again when one of them changes. Files are polled rather than watched through the
 * operating system: polling works on every file system and with every way of replacing a file, and holds no
 * handle.
 */
export class FileWatch<T> {
  current: T;
  /** Incremented with each change of `current`. */
  version = 0;
  readonly #options: FileWatchOptions<T>;
  #seen: string;
  #timer: Timer | undefined;
  #closed = false;
  readonly #ends = () => this.#options.ends?.(this.current) ?? [];

  private constructor(options: FileWatchOptions<T>, current: T, seen: string) {
    this.#options = options;
    this.current = current;
    this.#seen = seen;
    if (options.paths.length === 0) return;
    open.add(this);
    certificateSources.add(this.#ends);
    this.#wait();
  }

  /** @throws what `read` throws, as there is no earlier content to keep. */
  static async start<T>(options: FileWatchOptions<T>): Promise<FileWatch<T>> {
    // Taken before the files are read, so that a change during the read is found at the next check.
    const seen = await fingerprint(options.paths);
    return new FileWatch(options, await options.read(), seen);
  }

  close(): void {
    this.#closed = true;
    open.delete(this);
    certificateSources.delete(this.#ends);
    this.#timer?.cancel();
  }

  #wait(): void {
    const { world, everyMs } = this.#options;
    this.#timer = world.timers.after(everyMs, () => {
      void this.look().finally(() => {
        if (!this.#closed) this.#wait();
      });
    });
  }

  /** @returns the paths if the files have changed and their new content is in use. */
  async look(): Promise<readonly string[]> {
    const events = eventLog(this.#options.logger);
    const paths = this.#options.paths.join(", ");
    const seen = await fingerprint(this.#options.paths);
    if (seen === this.#seen || this.#closed) return [];
    this.#seen = seen;
    try {
      this.current = await this.#options.read();
      this.version += 1;
      events.log("files-reread", `reread: ${paths}; new connections use it`, { paths });
      return this.#options.paths;
    } catch (error) {
      const text = `${(error as Error).message}; what was read before stays in use`;
      events.log("files-unusable", text, { paths });
      return [];
    }
  }
}

/** A value that changes whenever a file is written, replaced or removed. */
async function fingerprint(paths: readonly string[]): Promise<string> {
  const found = paths.map(async (path) => {
    try {
      const { mtimeNs, ctimeNs, ino, size } = await stat(path, { bigint: true });
      return `${mtimeNs} ${ctimeNs} ${ino} ${size}`;
    } catch {
      return "none";
    }
  });
  return (await Promise.all(found)).join("\n");
}
