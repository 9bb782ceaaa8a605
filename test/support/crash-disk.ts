import type { Disk, DiskFile } from "../../packages/files/src/disk/disk.js";

/** The power is gone: calls made afterwards have no effect. */
export class PowerLoss extends Error {}

const sectorBytes = 512;

type Change = { readonly position: number; readonly bytes: Uint8Array } | { readonly truncated: number };

interface Inode {
  /** The content that every process sees. */
  seen: Buffer;
  /** The content that is certainly on the disk, and the changes since. */
  safe: Buffer;
  changes: Change[];
}

type NameChange = { readonly name: string; readonly inode: Inode | undefined };

/**
 * A disk in memory that loses in a crash what a real disk may lose: any unsynced sectors, and the changes of
 * names from some point on. It can be full, fail, and crash at any call.
 */
export class CrashDisk implements Disk {
  /** Calls left until the power fails. The call at which it fails is done in part. */
  callsLeft = Infinity;
  /** The capacity in bytes. */
  room = Infinity;
  /** Returns the error with which this call fails, if it fails. */
  failing: (call: string, name: string) => Error | undefined = () => undefined;
  readonly calls: string[] = [];
  readonly #random: () => number;
  #names = new Map<string, Inode>();
  #safeNames = new Map<string, Inode>();
  #nameChanges: NameChange[] = [];
  #isDown = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  open(name: string): Promise<DiskFile> {
    return this.#call("open", name, () => {
      let inode = this.#names.get(name);
      if (inode === undefined) {
        inode = { seen: Buffer.alloc(0), safe: Buffer.alloc(0), changes: [] };
        this.#rename(name, inode);
      }
      return this.#fileOf(name, inode);
    });
  }

  names(folder: string): Promise<readonly string[]> {
    const prefix = folder === "" ? "" : `${folder}/`;
    return this.#call("names", folder, () =>
      [...this.#names.keys()]
        .filter((name) => name.startsWith(prefix) && !name.slice(prefix.length).includes("/"))
        .map((name) => name.slice(prefix.length)),
    );
  }

  makeFolder(folder: string): Promise<void> {
    return this.#call("makeFolder", folder, () => undefined);
  }

  free(): Promise<number> {
    return Promise.resolve(this.room - this.#used());
  }

  rename(from: string, to: string): Promise<void> {
    return this.#call("rename", `${from} ${to}`, () => {
      const inode = this.#names.get(from)!;
      this.#rename(to, inode);
      this.#rename(from, undefined);
    });
  }

  remove(name: string): Promise<void> {
    return this.#call("remove", name, () => {
      if (this.#names.has(name)) this.#rename(name, undefined);
    });
  }

  syncFolder(folder: string): Promise<void> {
    return this.#call("syncFolder", folder, () => {
      const isHere = (name: string) => name.includes("/") === (folder !== "") && name.startsWith(folder);
      const settled = this.#nameChanges.filter(({ name }) => isHere(name));
      for (const { name, inode } of settled) set(this.#safeNames, name, inode);
      this.#nameChanges = this.#nameChanges.filter(({ name }) => !isHere(name));
    });
  }

  /** Restores the power: the content that survived is what every process sees. */
  restart(): void {
    const kept = this.#nameChanges.slice(0, Math.floor(this.#random() * (this.#nameChanges.length + 1)));
    const names = new Map(this.#safeNames);
    for (const { name, inode } of kept) set(names, name, inode);
    this.#names = names;
    this.#safeNames = new Map(names);
    this.#nameChanges = [];
    for (const inode of new Set(names.values())) this.#settle(inode);
    this.#isDown = false;
    this.callsLeft = Infinity;
  }

  /** Kills the process; the kernel keeps its cache. */
  kill(): void {
    this.#isDown = false;
    this.callsLeft = Infinity;
  }

  /** Flips bits of a file, as a decaying disk does. False if the file has nothing at that position. */
  rot(name: string, position: number): boolean {
    const inode = this.#names.get(name);
    if (inode === undefined || position >= inode.seen.length) return false;
    inode.seen[position]! ^= 0x40;
    inode.safe = Buffer.from(inode.seen);
    inode.changes = [];
    return true;
  }

  /** The names of all files with their sizes. */
  contents(): Map<string, number> {
    return new Map([...this.#names].map(([name, { seen }]) => [name, seen.length]));
  }

  #fileOf(name: string, inode: Inode): DiskFile {
    return {
      read: (bytes, position) =>
        this.#call("read", name, () => {
          const found = inode.seen.subarray(position, position + bytes.length);
          bytes.set(found);
          return found.length;
        }),
      write: (bytes, position) => this.#write(name, inode, bytes, position),
      sync: () =>
        this.#call("sync", name, () => {
          for (const change of inode.changes) applyTo(inode, change);
          inode.changes = [];
        }),
      truncate: (bytes) =>
        this.#call("truncate", name, () => {
          inode.seen = resized(inode.seen, bytes);
          inode.changes.push({ truncated: bytes });
        }),
      size: () => this.#call("size", name, () => inode.seen.length),
      close: () => Promise.resolve(),
    };
  }

  async #write(name: string, inode: Inode, bytes: Uint8Array, position: number): Promise<void> {
    const apply = (some: Uint8Array): void => {
      if (inode.seen.length < position + some.length)
        inode.seen = resized(inode.seen, position + some.length);
      inode.seen.set(some, position);
      inode.changes.push({ position, bytes: some.slice() });
    };
    // The kernel writes page by page, and a page is whole sectors.
    const part = (): Uint8Array => {
      const end = position + Math.floor(this.#random() * bytes.length);
      return bytes.subarray(0, Math.max(0, end - (end % sectorBytes) - position));
    };
    if (this.callsLeft === 1) apply(part());
    await this.#call("write", name, () => {
      const more = Math.max(0, position + bytes.length - inode.seen.length);
      if (this.#used() + more > this.room) {
        apply(part());
        throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
      }
      apply(bytes);
    });
  }

  #used(): number {
    return [...new Set(this.#names.values())].reduce((sum, { seen }) => sum + seen.length, 0);
  }

  #rename(name: string, inode: Inode | undefined): void {
    set(this.#names, name, inode);
    this.#nameChanges.push({ name, inode });
  }

  async #call<T>(call: string, name: string, run: () => T): Promise<T> {
    // Calls end in any order.
    for (let turns = 1 + Math.floor(this.#random() * 4); turns > 0; turns -= 1) await Promise.resolve();
    this.callsLeft -= 1;
    if (this.callsLeft <= 0) this.#isDown = true;
    if (this.#isDown) throw new PowerLoss(`at ${call} ${name}`);
    this.calls.push(`${call} ${name}`);
    const failure = this.failing(call, name);
    if (failure !== undefined) {
      // After a failed sync the next one takes unwritten data for written (fsyncgate).
      if (call === "sync") this.#names.get(name)!.changes = [];
      throw failure;
    }
    return run();
  }

  /** Any of the unsynced sectors survive, each as one of the writes to it left it. */
  #settle(inode: Inode): void {
    for (const change of inode.changes) {
      if ("truncated" in change) {
        if (this.#random() < 0.5) inode.safe = resized(inode.safe, change.truncated);
        continue;
      }
      const { position, bytes } = change;
      for (let from = position; from < position + bytes.length;) {
        const to = Math.min(position + bytes.length, (Math.floor(from / sectorBytes) + 1) * sectorBytes);
        if (this.#random() < 0.5) {
          if (inode.safe.length < to) inode.safe = resized(inode.safe, to);
          inode.safe.set(bytes.subarray(from - position, to - position), from);
        }
        from = to;
      }
    }
    inode.seen = Buffer.from(inode.safe);
    inode.changes = [];
  }
}

function applyTo(inode: Inode, change: Change): void {
  if ("truncated" in change) inode.safe = resized(inode.safe, change.truncated);
  else {
    const end = change.position + change.bytes.length;
    if (inode.safe.length < end) inode.safe = resized(inode.safe, end);
    inode.safe.set(change.bytes, change.position);
  }
}

function set(names: Map<string, Inode>, name: string, inode: Inode | undefined): void {
  if (inode === undefined) names.delete(name);
  else names.set(name, inode);
}

function resized(bytes: Buffer, length: number): Buffer {
  const next = Buffer.alloc(length);
  next.set(bytes.subarray(0, length));
  return next;
}
