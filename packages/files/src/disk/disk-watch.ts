import type { Disk, DiskFile } from "./disk.js";

/** A disk operation that has not returned. */
export interface DiskWait {
  /** For example `sync of index-1.log`. */
  readonly what: string;
  readonly waitedMs: number;
}

/**
 * A disk that tracks its oldest operation in progress: on a disk that hangs, operations neither fail nor
 * return.
 */
export class DiskWatch implements Disk {
  readonly #disk: Disk;
  /** Oldest first. */
  readonly #underWay = new Map<object, readonly [what: string, name: string, begunMs: number]>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  get oldest(): DiskWait | undefined {
    for (const [what, name, begunMs] of this.#underWay.values())
      return { what: `${what} of ${name === "" ? "." : name}`, waitedMs: performance.now() - begunMs };
    return undefined;
  }

  async run<T>(what: string, name: string, operation: () => Promise<T>): Promise<T> {
    const key = {};
    this.#underWay.set(key, [what, name, performance.now()]);
    try {
      return await operation();
    } finally {
      this.#underWay.delete(key);
    }
  }

  open(name: string): Promise<DiskFile> {
    return this.run("open", name, async () => new WatchedFile(this, name, await this.#disk.open(name)));
  }

  names(folder: string): Promise<readonly string[]> {
    return this.run("list", folder, () => this.#disk.names(folder));
  }

  makeFolder(folder: string): Promise<void> {
    return this.run("creation", folder, () => this.#disk.makeFolder(folder));
  }

  rename(from: string, to: string): Promise<void> {
    return this.run("rename", from, () => this.#disk.rename(from, to));
  }

  remove(name: string): Promise<void> {
    return this.run("removal", name, () => this.#disk.remove(name));
  }

  syncFolder(folder: string): Promise<void> {
    return this.run("sync", folder, () => this.#disk.syncFolder(folder));
  }

  free(): Promise<number> {
    return this.run("free space", "", () => this.#disk.free());
  }
}

class WatchedFile implements DiskFile {
  readonly #watch: DiskWatch;
  readonly #name: string;
  readonly #file: DiskFile;

  constructor(watch: DiskWatch, name: string, file: DiskFile) {
    this.#watch = watch;
    this.#name = name;
    this.#file = file;
  }

  read(bytes: Uint8Array, position: number): Promise<number> {
    return this.#watch.run("read", this.#name, () => this.#file.read(bytes, position));
  }

  write(bytes: Uint8Array, position: number): Promise<void> {
    return this.#watch.run("write", this.#name, () => this.#file.write(bytes, position));
  }

  sync(): Promise<void> {
    return this.#watch.run("sync", this.#name, () => this.#file.sync());
  }

  truncate(bytes: number): Promise<void> {
    return this.#watch.run("truncation", this.#name, () => this.#file.truncate(bytes));
  }

  size(): Promise<number> {
    return this.#watch.run("size", this.#name, () => this.#file.size());
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
