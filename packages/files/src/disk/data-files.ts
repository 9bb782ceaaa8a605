import type { Disk, DiskFile } from "./disk.js";

/** Open files, with one descriptor each. The least recently used one is closed first. */
const openMax = 256;

interface Open {
  readonly file: Promise<DiskFile>;
  users: number;
}

/** Data files are spread over this many folders, because long folders are slow on some file systems. */
const foldersMax = 64;

/** The folder of a data file. */
export const dataFolder = /^data-\d{2}$/;

function dataFolderOf(id: number): string {
  return `data-${String(id % foldersMax).padStart(2, "0")}`;
}

/** A data file's name is a number: users' paths never reach the file system. */
export function dataFileName(id: number): string {
  return `${dataFolderOf(id)}/${id}.blocks`;
}

/** The data files, which hold the blocks. They are opened when needed, and only a few are open at a time. */
export class DataFiles {
  readonly #disk: Disk;
  readonly #open = new Map<number, Open>();
  readonly #made = new Set<string>();
  /** Folders whose own names are durable. */
  readonly #folders = new Set<string>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  read(id: number, bytes: Uint8Array, position: number): Promise<number> {
    return this.#use(id, async ({ file }) => (await file).read(bytes, position));
  }

  write(id: number, bytes: Uint8Array, position: number): Promise<void> {
    return this.#use(id, async ({ file }) => (await file).write(bytes, position));
  }

  sync(id: number): Promise<void> {
    return this.#use(id, async ({ file }) => (await file).sync());
  }

  truncate(id: number, bytes: number): Promise<void> {
    return this.#use(id, async ({ file }) => (await file).truncate(bytes));
  }

  /** Makes the file's name durable. */
  async name(id: number): Promise<void> {
    const folder = dataFolderOf(id);
    await this.#use(id, async ({ file }) => void (await file));
    await this.#disk.syncFolder(folder);
    if (!this.#folders.has(folder)) await this.#disk.syncFolder("");
    this.#folders.add(folder);
  }

  /** Removes an unused file. Reads in progress may still finish. */
  async remove(id: number): Promise<void> {
    const open = this.#open.get(id);
    this.#open.delete(id);
    if (open?.users === 0) await close(open);
    await this.#disk.remove(dataFileName(id));
  }

  /** Removes all files but these: their removal was interrupted by a crash. */
  async removeOthers(known: { has(id: number): boolean }): Promise<void> {
    for (let number = 0; number < foldersMax; number += 1) {
      const folder = dataFolderOf(number);
      for (const name of await this.#disk.names(folder)) {
        const id = /^(\d+)\.blocks$/.exec(name)?.[1];
        if (id !== undefined && !known.has(Number(id))) await this.#disk.remove(`${folder}/${name}`);
      }
    }
  }

  async close(): Promise<void> {
    const all = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(all.map((open) => (open.users === 0 ? close(open) : undefined)));
  }

  async #use<T>(id: number, run: (open: Open) => Promise<T>): Promise<T> {
    let open = this.#open.get(id);
    if (open === undefined) {
      this.#closeUnused();
      open = { file: this.#opened(id), users: 0 };
    } else {
      this.#open.delete(id);
    }
    // The map's last entry is the most recently used.
    this.#open.set(id, open);
    open.users += 1;
    try {
      return await run(open);
    } finally {
      open.users -= 1;
      if (open.users === 0 && this.#open.get(id) !== open) await close(open);
      // The next call retries a failed open.
      else await open.file.catch(() => this.#open.get(id) === open && this.#open.delete(id));
    }
  }

  async #opened(id: number): Promise<DiskFile> {
    const folder = dataFolderOf(id);
    if (!this.#made.has(folder)) await this.#disk.makeFolder(folder);
    this.#made.add(folder);
    return this.#disk.open(dataFileName(id));
  }

  #closeUnused(): void {
    if (this.#open.size < openMax) return;
    for (const [id, open] of this.#open) {
      if (open.users > 0) continue;
      this.#open.delete(id);
      void close(open);
      return;
    }
  }
}

async function close({ file }: Open): Promise<void> {
  await file.then((opened) => opened.close()).catch(() => undefined);
}
