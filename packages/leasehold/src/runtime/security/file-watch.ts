import { stat } from "node:fs/promises";
import type { Timer, World } from "../../common/ports.js";
import type { Logger } from "../logger.js";

/**
 * How often the files are looked at: a new certificate counts within this time, and a look costs
 * microseconds.
 */
export const watchMs = 5_000;

export interface FileWatchOptions<T> {
  /** What `current` comes from; empty when nothing is in a file. */
  readonly paths: readonly string[];
  /** Reads and checks them; what it throws leaves `current` as it was. */
  read(): Promise<T>;
  readonly world: World;
  readonly logger: Logger;
  readonly everyMs: number;
}

/**
 * What files hold, read anew when one of them changes. They are looked at now and then instead of being
 * watched by the operating system: that works on every file system and through every way of replacing a file,
 * and holds no handle.
 */
export class FileWatch<T> {
  current: T;
  /** One more for every time that `current` has changed. */
  version = 0;
  readonly #options: FileWatchOptions<T>;
  #seen: string;
  #timer: Timer | undefined;
  #closed = false;

  private constructor(options: FileWatchOptions<T>, current: T, seen: string) {
    this.#options = options;
    this.current = current;
    this.#seen = seen;
    if (options.paths.length > 0) this.#wait();
  }

  /** @throws what `read` throws: there is nothing to go on with yet. */
  static async start<T>(options: FileWatchOptions<T>): Promise<FileWatch<T>> {
    // Before they are read: what changes meanwhile is found at the next look.
    const seen = await fingerprint(options.paths);
    return new FileWatch(options, await options.read(), seen);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #wait(): void {
    const { world, everyMs } = this.#options;
    this.#timer = world.timers.after(everyMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { paths, logger } = this.#options;
    const seen = await fingerprint(paths);
    if (seen !== this.#seen && !this.#closed) {
      this.#seen = seen;
      try {
        const next = await this.#options.read();
        this.current = next;
        this.version += 1;
        logger.info(`read anew: ${paths.join(", ")}; new connections use it`);
      } catch (error) {
        logger.warn(`${(error as Error).message}; what was read before stays in use`);
      }
    }
    if (!this.#closed) this.#wait();
  }
}

/** Changes whenever a file is written, replaced or removed. */
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
