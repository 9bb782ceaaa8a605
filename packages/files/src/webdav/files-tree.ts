import type { Entry, FileView, Quota } from "../types.js";
import type { GuardedFiles } from "../users/guarded-files.js";
import { Refusal } from "./refusal.js";
import type { DavEntry, DavTree, PutHow, TouchHow, TransferHow } from "./tree.js";

/** The size of one read if the file has no preferred size, and the limits for preferred sizes, in bytes. */
const pieceBytesDefault = 1024 * 1024;
const pieceBytesMin = 64 * 1024;
const pieceBytesMax = 4 * pieceBytesDefault;
/** The most bytes that one request reads concurrently. There are always at least two reads. */
const aheadBytes = 2 * pieceBytesDefault;

/** A file as it was found. Reads return the content that it had at that moment. */
interface FoundFile extends DavEntry {
  readonly view: FileView;
}

/**
 * Bytes of a file. The next pieces are read ahead. A piece that is one block is not copied.
 * @throws Refusal 409 if the content is gone: the response would mix two contents
 */
export async function* piecesOf(view: FileView, offset: number, length: number): AsyncGenerator<Uint8Array> {
  const end = offset + length;
  const pieceBytes = pieceOf(view);
  const piecesMax = Math.max(2, Math.floor(aheadBytes / pieceBytes));
  const underWay: { readonly length: number; readonly bytes: Promise<Uint8Array> }[] = [];
  let begun = offset;
  for (let at = offset; at < end;) {
    while (begun < end && underWay.length < piecesMax) {
      const pieceLength = Math.min(pieceBytes - (begun % pieceBytes), end - begun);
      underWay.push({ length: pieceLength, bytes: keep(view.read(begun, pieceLength)) });
      begun += pieceLength;
    }
    const piece = underWay.shift()!;
    const bytes = await piece.bytes;
    if (bytes.length < piece.length) throw new Refusal(409, `/${view.path} has changed while it was read`);
    at += piece.length;
    yield bytes;
  }
}

function pieceOf({ pieceBytes = pieceBytesDefault }: FileView): number {
  return pieceBytes < pieceBytesMin || pieceBytes > pieceBytesMax ? pieceBytesDefault : pieceBytes;
}

/** The tree of replicated files for WebDAV. */
export class FilesTree implements DavTree {
  readonly #files: GuardedFiles;

  constructor(files: GuardedFiles) {
    this.#files = files;
  }

  mustWrite(path: string): void {
    this.#files.mustWrite(path);
  }

  async find(path: string): Promise<DavEntry | undefined> {
    const found = await this.#files.entry(path);
    if (found?.kind !== "file") return found && davEntry(found);
    const file: FoundFile = { ...davEntry(found), view: found };
    return file;
  }

  async *children(path: string): AsyncGenerator<DavEntry> {
    for (let after: string | undefined; ;) {
      const { entries, next } = await this.#files.children(path, { after });
      for (const entry of entries) yield davEntry(entry);
      if (next === undefined) return;
      after = next;
    }
  }

  /** @throws Refusal 409 if the content is gone: the response would mix two contents */
  read(entry: DavEntry, offset: number, length: number): AsyncGenerator<Uint8Array> {
    return piecesOf((entry as FoundFile).view, offset, length);
  }

  async write(path: string, bytes: AsyncIterable<Uint8Array>, how: PutHow): Promise<DavEntry> {
    const { etag, isNew: ifMissing = false, makeFolders = false, modifiedMs, size, accept } = how;
    const options = { ifVersion: versionIn(etag), ifMissing, makeFolders, modifiedMs, size, accept };
    const stat = await this.#files.put(path, bytes, options);
    return davEntry({ ...stat, kind: "file" });
  }

  makeFolder(path: string): Promise<void> {
    return this.#files.makeFolder(path, { makeFolders: false });
  }

  remove(path: string, etag: string | undefined): Promise<void> {
    return this.#files.remove(path, { recursive: true, ifVersion: versionIn(etag) });
  }

  touch(path: string, { etag, ...changes }: TouchHow): Promise<void> {
    return this.#files.touch(path, { ...changes, ifVersion: versionIn(etag) });
  }

  setQuota(folder: string, quota: Quota | null): Promise<void> {
    return this.#files.setQuota(folder, quota);
  }

  async transfer(
    kind: "move" | "copy",
    from: string,
    to: string,
    { deep, overwrite, etag }: TransferHow,
  ): Promise<{ existed: boolean }> {
    const over = overwrite ? "anything" : "nothing";
    const how = { over, makeFolders: false, ifVersion: versionIn(etag) } as const;
    const existed =
      kind === "move"
        ? await this.#files.rename(from, to, how)
        : await this.#files.copy(from, to, { ...how, deep });
    return { existed };
  }
}

function davEntry(entry: Entry): DavEntry {
  const { path, modifiedMs, attributes = {} } = entry;
  if (entry.kind === "folder") {
    const { usage, quota, left } = entry;
    return { path, kind: "folder", bytes: 0, modifiedMs, etag: "", attributes, usage, quota, left };
  }
  return { path, kind: "file", bytes: entry.size, modifiedMs, etag: `"${entry.version}"`, attributes };
}

function versionIn(etag: string | undefined): string | undefined {
  return etag?.replaceAll('"', "");
}

/** Prevents an unhandled rejection: the promise is awaited only later. */
function keep<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
