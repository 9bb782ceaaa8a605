import { LeaseholdError } from "leasehold/common";
import type { FileStat, Files } from "../types.js";
import { Refusal } from "./refusal.js";
import type { DavEntry, DavTree } from "./tree.js";

/**
 * Replicated files have no folders, so an empty file of this name represents one. It is hidden, and refused
 * in all other places.
 */
const folderMark = ".leasehold-folder";
/** The folder of uploads that replace a file, until they are complete. */
const uploads = ".leasehold-uploads";

/** The size of one read or write; a file's own blocks are not larger. */
const pieceBytes = 1024 * 1024;
/** Concurrent pieces of one request. */
const piecesMax = 2;
const zeros = Buffer.alloc(pieceBytes);
/** Greater than all characters of a path. */
const last = "\uffff";

/**
 * Numbers of replacement uploads in progress. Names are reused: a removed file leaves a record, and the next
 * upload replaces the remains of a crashed process.
 */
const slots = new WeakMap<Files, Set<number>>();

/** The tree of replicated files for WebDAV. */
export class FilesTree implements DavTree {
  readonly #files: Files;

  constructor(files: Files) {
    this.#files = files;
  }

  async find(path: string): Promise<DavEntry | undefined> {
    if (isHidden(path)) throw new Refusal(403, "the name is reserved by Leasehold");
    if (path === "") return folderEntry("", 0);
    const stat = await this.#statOf(path);
    if (stat !== undefined) return fileEntry(stat);
    const mark = await this.#markOf(path);
    if (mark !== undefined) return folderEntry(path, mark.modifiedMs);
    const { files } = await this.#files.list(`${path}/`, { limit: 1 });
    return files.length === 0 ? undefined : folderEntry(path, files[0]!.modifiedMs);
  }

  async *children(path: string): AsyncGenerator<DavEntry> {
    const prefix = path === "" ? "" : `${path}/`;
    let after: string | undefined;
    for (;;) {
      const { files, next } = await this.#files.list(prefix, { after });
      let folder: string | undefined;
      for (const stat of files) {
        const rest = stat.path.slice(prefix.length);
        const [name = ""] = rest.split("/", 1);
        if (rest === folderMark || name === uploads || name === folder) continue;
        if (name === rest) yield fileEntry(stat);
        else yield folderEntry(prefix + (folder = name), stat.modifiedMs);
      }
      // The rest of the last folder need not be listed.
      const end = files.at(-1)?.path.slice(prefix.length).split("/", 1)[0];
      if (next === undefined) return;
      after = end !== undefined && end === folder ? `${prefix}${end}/${last}` : next;
    }
  }

  /** @throws Refusal 409 if the file changes meanwhile: the response would mix two contents */
  async *read({ path, etag }: DavEntry, offset: number, length: number): AsyncGenerator<Uint8Array> {
    await using file = await this.#files.open(path);
    const isChanged = async (): Promise<boolean> => fileEntry(await file.stat()).etag !== etag;
    const end = offset + length;
    const begin = (at: number) =>
      at < end ? keep(file.read(at, Math.min(pieceBytes, end - at))) : undefined;
    const underWay = Array.from({ length: piecesMax }, (_, index) => begin(offset + index * pieceBytes));
    for (let at = offset; at < end; at += pieceBytes) {
      const bytes = await underWay.shift()!;
      underWay.push(begin(at + piecesMax * pieceBytes));
      const isLast = at + pieceBytes >= end;
      const isShort = bytes.length < Math.min(pieceBytes, end - at);
      if (isShort || (isLast && (await isChanged())))
        throw new Refusal(409, `/${path} has changed while it was read`);
      yield bytes;
    }
  }

  async write(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const before = await this.#statOf(path);
    // A client that locks a new name has created an empty file.
    if (before === undefined || before.size === 0) {
      await this.#upload(path, bytes, before === undefined ? "always" : "replace");
      return;
    }
    // Not written in place: a mix of two contents is worse than either.
    const busy = getOrInsertWeak(slots, this.#files);
    let slot = 0;
    while (busy.has(slot)) slot += 1;
    busy.add(slot);
    const beside = `${uploads}/${this.#files.status().node}-${slot}`;
    try {
      await this.#upload(beside, bytes, "replace");
      await this.#files.rename(beside, path);
    } catch (error) {
      await this.#files.remove(beside).catch(() => undefined);
      throw error;
    } finally {
      busy.delete(slot);
    }
  }

  async makeFolder(path: string): Promise<void> {
    await this.#files.open(`${path}/${folderMark}`, { create: "missing" });
  }

  async remove(path: string): Promise<void> {
    const entry = await this.find(path);
    if (entry?.kind === "file") await this.#files.remove(path);
    else for await (const name of this.#below(path)) await this.#files.remove(name);
  }

  async move(from: string, to: string): Promise<void> {
    for await (const name of this.#namesOf(from))
      await this.#files.rename(name, to + name.slice(from.length));
  }

  async copy(from: string, to: string, deep: boolean): Promise<void> {
    const entry = await this.find(from);
    if (entry?.kind === "folder") await this.makeFolder(to);
    if (entry?.kind === "folder" && !deep) return;
    for await (const name of this.#namesOf(from)) await this.#files.copy(name, to + name.slice(from.length));
  }

  async *#namesOf(path: string): AsyncGenerator<string> {
    const entry = await this.find(path);
    if (entry?.kind === "file") yield path;
    else yield* this.#below(path);
  }

  /** Everything below a folder; its mark comes last, so that a failed removal can be repeated. */
  async *#below(path: string): AsyncGenerator<string> {
    const prefix = `${path}/`;
    let after: string | undefined;
    let hasMark = false;
    do {
      const { files, next } = await this.#files.list(prefix, { after });
      for (const { path: name } of files) {
        if (name === prefix + folderMark) hasMark = true;
        else yield name;
      }
      after = next;
    } while (after !== undefined);
    if (hasMark) yield prefix + folderMark;
  }

  /** Writes to a new or empty file, which is emptied again if the bytes end with an error. */
  async #upload(path: string, bytes: AsyncIterable<Uint8Array>, create: "always" | "replace"): Promise<void> {
    await using file = await this.#files.open(path, { create });
    const underWay: Promise<void>[] = [];
    try {
      let offset = 0;
      let isHole = false;
      for await (const piece of pieces(bytes)) {
        if (underWay.length >= piecesMax) await underWay.shift();
        // Holes read as zeros, and need no room.
        isHole = zeros.subarray(0, piece.length).equals(piece);
        if (!isHole) underWay.push(keep(file.write(offset, piece)));
        offset += piece.length;
      }
      await Promise.all(underWay);
      if (isHole) await file.truncate(offset);
    } catch (error) {
      // A pending piece must not land in a later upload of the same name.
      await Promise.allSettled(underWay);
      const undone = create === "always" ? this.#files.remove(path) : file.truncate(0);
      await undone.catch(() => undefined);
      throw error;
    }
  }

  async #markOf(path: string): Promise<FileStat | undefined> {
    try {
      return await this.#statOf(`${path}/${folderMark}`);
    } catch (error) {
      // The longest names of files are too long for folders.
      if (error instanceof LeaseholdError && error.code === "INVALID_PATH") return undefined;
      throw error;
    }
  }

  async #statOf(path: string): Promise<FileStat | undefined> {
    try {
      return await this.#files.stat(path);
    } catch (error) {
      if (error instanceof LeaseholdError && error.code === "FILE_NOT_FOUND") return undefined;
      throw error;
    }
  }
}

function getOrInsertWeak(sets: WeakMap<Files, Set<number>>, files: Files): Set<number> {
  const found = sets.get(files) ?? new Set<number>();
  sets.set(files, found);
  return found;
}

function isHidden(path: string): boolean {
  return path.split("/").some((part) => part === folderMark || part === uploads);
}

function fileEntry({ path, size, modifiedMs, version }: FileStat): DavEntry {
  return { path, kind: "file", bytes: size, modifiedMs, etag: `"${version}"` };
}

function folderEntry(path: string, modifiedMs: number): DavEntry {
  return { path, kind: "folder", bytes: 0, modifiedMs, etag: "" };
}

/** Prevents an unhandled rejection of a promise that is awaited later. */
function keep<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** The same bytes in pieces of equal size, except for the last. */
async function* pieces(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let piece = Buffer.allocUnsafe(pieceBytes);
  let filled = 0;
  for await (const chunk of bytes) {
    for (let from = 0; from < chunk.length;) {
      const taken = Math.min(chunk.length - from, pieceBytes - filled);
      piece.set(chunk.subarray(from, from + taken), filled);
      filled += taken;
      from += taken;
      if (filled < pieceBytes) continue;
      yield piece;
      piece = Buffer.allocUnsafe(pieceBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}
