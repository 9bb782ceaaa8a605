import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The folder of the simulated disk. */
export const diskRoot = "/crashing-disk";

const sectorBytes = 512;

/** File system calls take effect fewer than this many turns of the event loop later. */
const turnsMax = 3;

interface Change {
  readonly offset: number;
  readonly bytes: Buffer;
}

type Node = File | Folder;

/** A file: its content in the kernel's cache, and on the disk. */
class File {
  cached = Buffer.alloc(0);
  durable = Buffer.alloc(0);
  /** Changes since the last sync, in order. A number stands for a truncation to that length. */
  changes: (Change | number)[] = [];

  write(change: Change): void {
    this.cached = applied(this.cached, change);
    this.changes.push(change);
  }

  truncate(length: number): void {
    this.cached = Buffer.from(this.cached.subarray(0, length));
    this.changes.push(length);
  }

  sync(): void {
    for (const change of this.changes) this.durable = applied(this.durable, change);
    this.changes = [];
  }

  /** The kernel takes unwritten data for written, and a later sync doesn't try again. */
  failSync(): void {
    this.changes = [];
  }

  /** Some first part of the changes survives, and possibly some sectors of the next change. */
  losePower(random: () => number): void {
    const kept = Math.floor(random() * (this.changes.length + 1));
    for (const change of this.changes.slice(0, kept)) this.durable = applied(this.durable, change);
    const next = this.changes[kept];
    if (typeof next === "object" && random() < 0.7) this.durable = torn(this.durable, next, random);
    this.cached = Buffer.from(this.durable);
    this.changes = [];
  }
}

class Folder {
  cached = new Map<string, Node>();
  durable = new Map<string, Node>();
  /** Names made, renamed or removed since the last sync, in order. */
  changes: ((names: Map<string, Node>) => void)[] = [];

  change(change: (names: Map<string, Node>) => void): void {
    change(this.cached);
    this.changes.push(change);
  }

  sync(): void {
    this.durable = new Map(this.cached);
    this.changes = [];
  }

  losePower(random: () => number): void {
    const kept = Math.floor(random() * (this.changes.length + 1));
    for (const change of this.changes.slice(0, kept)) change(this.durable);
    this.cached = new Map(this.durable);
    this.changes = [];
    for (const node of this.cached.values()) node.losePower(random);
  }
}

function applied(content: Buffer, change: Change | number): Buffer<ArrayBuffer> {
  if (typeof change === "number") return Buffer.from(content.subarray(0, change));
  const { offset, bytes } = change;
  const result = Buffer.alloc(Math.max(content.length, offset + bytes.length));
  content.copy(result);
  bytes.copy(result, offset);
  return result;
}

/**
 * A write in progress: any of its sectors are written; the others are as before, or zeros beyond the old end
 * of the file.
 */
function torn(content: Buffer, { offset, bytes }: Change, random: () => number): Buffer<ArrayBuffer> {
  const share = random();
  let result = Buffer.from(content);
  for (let start = 0; start < bytes.length;) {
    const end = Math.min(bytes.length, start + sectorBytes - ((offset + start) % sectorBytes));
    if (random() < share)
      result = applied(result, { offset: offset + start, bytes: bytes.subarray(start, end) });
    start = end;
  }
  return result;
}

function problem(code: string, what: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}

/**
 * A file system in memory that knows what survives a loss of power: only what was synced, names in a folder
 * as well as contents of files. When a process is killed, the kernel's cache stays.
 */
export class CrashingDisk {
  /** The probability that a write fails because the disk is full. There is room again at once. */
  fullChance = 0;
  /**
   * The probability that a sync fails: the data since the last one then stays in the kernel's cache forever.
   */
  lostChance = 0;
  /** The number of failures of both kinds. */
  failures = 0;
  #root = new Folder();
  #random: () => number;
  /** The number of the process. Calls of a killed process never get an answer. */
  #process = 0;

  constructor(random: () => number) {
    this.#random = random;
    const folder = new Folder();
    this.#root.change((names) => names.set(nameOf(diskRoot), folder));
    this.#root.sync();
  }

  killProcess(): void {
    this.#process += 1;
  }

  losePower(): void {
    this.#process += 1;
    this.#root.losePower(this.#random);
  }

  /** The paths of all files. */
  files(): string[] {
    return filesOf(this.#root, "/");
  }

  /** A copy of the disk on which all files are durable and one bit of one file is flipped. */
  withFlippedBit(path: string, offset: number, bit: number): CrashingDisk {
    const copy = new CrashingDisk(this.#random);
    copy.#root = copyOf(this.#root) as Folder;
    const file = copy.#file(path);
    file.cached[offset]! ^= 1 << bit;
    file.durable = Buffer.from(file.cached);
    return copy;
  }

  bytesOf(path: string): Buffer {
    return this.#file(path).cached;
  }

  /** The functions of `node:fs/promises` that are used. */
  readonly promises = {
    mkdir: (path: string) => this.#later(() => void this.#folder(path, true)),
    /** There are no modes here, so this doesn't wait. */
    chmod: async (path: string) => void (await Promise.resolve(this.#node(path))),
    readdir: (path: string) => this.#later(() => [...this.#folder(path).cached.keys()]),
    readFile: (path: string, encoding?: "utf8") =>
      this.#later(() => {
        const bytes = Buffer.from(this.#file(path).cached);
        return encoding === undefined ? bytes : bytes.toString(encoding);
      }),
    open: (path: string, flags: string | number) => this.#later(() => this.#open(path, flags)),
    rename: (from: string, to: string) =>
      this.#later(() => {
        const node = this.#node(from);
        this.#folder(dirname(from)).change((names) => {
          names.delete(nameOf(from));
          names.set(nameOf(to), node);
        });
      }),
    unlink: (path: string) =>
      this.#later(() => {
        this.#node(path);
        this.#folder(dirname(path)).change((names) => names.delete(nameOf(path)));
      }),
    rm: (path: string, options: { force?: boolean } = {}) =>
      this.#later(() => {
        const parent = this.#folder(dirname(path));
        if (!parent.cached.has(nameOf(path)) && options.force !== true) throw problem("ENOENT", path);
        parent.change((names) => names.delete(nameOf(path)));
      }),
  };

  async *read(path: string, { highWaterMark }: { highWaterMark: number }): AsyncGenerator<Buffer> {
    const bytes = await this.promises.readFile(path);
    if (typeof bytes === "string") return;
    for (let at = 0; at < bytes.length; at += highWaterMark) yield bytes.subarray(at, at + highWaterMark);
  }

  #later<T>(effect: () => T): Promise<T> {
    const process = this.#process;
    return new Promise((resolve, reject) => {
      const turn = (left: number): void => {
        if (process !== this.#process) return;
        if (left > 0) return void setImmediate(turn, left - 1);
        try {
          resolve(effect());
        } catch (error) {
          reject(error as Error);
        }
      };
      setImmediate(turn, Math.floor(this.#random() * turnsMax));
    });
  }

  #open(path: string, flags: string | number): FileHandle {
    const has = (flag: number) => typeof flags === "number" && (flags & flag) !== 0;
    const parent = this.#folder(dirname(path));
    const found = parent.cached.get(nameOf(path));
    const isDurable = has(constants.O_DSYNC);
    if (found === undefined && (flags === "w" || has(constants.O_CREAT))) {
      const made = new File();
      parent.change((names) => names.set(nameOf(path), made));
      return this.#handle(made, isDurable);
    }
    if (found === undefined) throw problem("ENOENT", path);
    if (found instanceof File && (flags === "w" || has(constants.O_TRUNC))) found.truncate(0);
    return this.#handle(found, isDurable);
  }

  /** @param isDurable whether a write returns only when it is on disk */
  #handle(node: Node, isDurable: boolean): FileHandle {
    let position = 0;
    const sync = () =>
      this.#later(() => {
        if (!(node instanceof File) || this.#random() >= this.lostChance) return node.sync();
        this.failures += 1;
        node.failSync();
        throw problem("EIO", "input/output error");
      });
    const write = async (bytes: Buffer, offset: number, length: number, at: number) => {
      const written = await this.#later(() => {
        if (this.#random() < this.fullChance) {
          this.failures += 1;
          throw problem("ENOSPC", "no space left on device");
        }
        (node as File).write({ offset: at, bytes: Buffer.from(bytes.subarray(offset, offset + length)) });
        return { bytesWritten: length, buffer: bytes };
      });
      if (isDurable) await sync();
      return written;
    };
    const next = async (content: Buffer | string) => {
      const bytes = Buffer.from(content as string);
      const at = position;
      position += bytes.length;
      return write(bytes, 0, bytes.length, at);
    };
    const handle = {
      write: (bytes: Buffer, offset?: number, length?: number, at?: number) =>
        offset === undefined ? next(bytes) : write(bytes, offset, length!, at!),
      writeFile: async (bytes: Buffer) => void (await next(bytes)),
      datasync: sync,
      sync,
      truncate: (length: number) => this.#later(() => (node as File).truncate(length)),
      stat: () => this.#later(() => ({ size: (node as File).cached.length })),
      close: () => this.#later(() => undefined),
    };
    return handle as unknown as FileHandle;
  }

  #node(path: string): Node {
    const node = this.#folder(dirname(path)).cached.get(nameOf(path));
    if (node === undefined) throw problem("ENOENT", path);
    return node;
  }

  #file(path: string): File {
    const node = this.#node(path);
    if (node instanceof Folder) throw problem("EISDIR", path);
    return node;
  }

  #folder(path: string, make = false): Folder {
    let folder = this.#root;
    let at = "/";
    for (const name of path.split("/").filter((part) => part !== "")) {
      at = join(at, name);
      let next = folder.cached.get(name);
      if (next === undefined && make) {
        const made = new Folder();
        folder.change((names) => names.set(name, made));
        next = made;
      }
      if (!(next instanceof Folder)) throw problem("ENOENT", at);
      folder = next;
    }
    return folder;
  }
}

function copyOf(node: Node): Node {
  if (node instanceof File) {
    const file = new File();
    file.cached = Buffer.from(node.cached);
    file.durable = Buffer.from(node.cached);
    return file;
  }
  const folder = new Folder();
  for (const [name, child] of node.cached) folder.cached.set(name, copyOf(child));
  folder.durable = new Map(folder.cached);
  return folder;
}

function filesOf(folder: Folder, path: string): string[] {
  return [...folder.cached].flatMap(([name, node]) => {
    const below = join(path, name);
    return node instanceof File ? [below] : filesOf(node, below);
  });
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
