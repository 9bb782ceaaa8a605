import { LeaseholdError } from "leasehold/common";
import type {
  ChangeBatch,
  ChangesOptions,
  ChildrenOptions,
  ComposeOptions,
  CopyOptions,
  Entry,
  EntryList,
  FileCallOptions,
  FileList,
  Files,
  FilesStatus,
  FileStat,
  FileView,
  FolderOptions,
  FolderStat,
  ListFilesOptions,
  MoveOptions,
  NodesChange,
  NodesOptions,
  NodesReport,
  OpenFileOptions,
  PutOptions,
  Quota,
  RemoveOptions,
  ReplicatedFile,
  TouchOptions,
} from "../types.js";
import type { Rights } from "./rights.js";

/**
 * Files as one user may access them. To the user, paths without read permission don't exist. Folders on the
 * way to readable paths list only entries that lead there.
 */
export class GuardedFiles implements Files {
  readonly #files: Files;
  readonly #rights: Rights;

  constructor(files: Files, rights: Rights) {
    this.#files = files;
    this.#rights = rights;
  }

  /** @throws LeaseholdError `PERMISSION_DENIED` */
  mustWrite(...paths: readonly string[]): void {
    for (const path of paths)
      if (!this.#rights.mayWrite(path)) throw denied(`the user may not write ${JSON.stringify(path)}`);
  }

  async open(path: string, options?: OpenFileOptions): Promise<ReplicatedFile> {
    // The opened file can be written.
    this.mustWrite(path);
    return this.#files.open(path, options);
  }

  async stat(path: string, options?: FileCallOptions): Promise<FileStat> {
    this.mustRead(path);
    return this.#files.stat(path, options);
  }

  async entry(path: string, options?: FileCallOptions): Promise<FileView | FolderStat | undefined> {
    if (!this.#rights.maySee(path)) return undefined;
    const entry = await this.#files.entry(path, options);
    return entry !== undefined && this.#isSeen(entry) ? entry : undefined;
  }

  async put(path: string, bytes: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<FileStat> {
    this.mustWrite(path);
    return this.#files.put(path, bytes, options);
  }

  async compose(
    path: string,
    id: string,
    folder: string,
    files: readonly (readonly [name: string, version: string])[],
    options?: ComposeOptions,
  ): Promise<FileStat> {
    this.mustRead(folder);
    this.mustWrite(path, folder);
    return this.#files.compose(path, id, folder, files, options);
  }

  async makeFolder(path: string, options?: FolderOptions): Promise<void> {
    this.mustWrite(path);
    return this.#files.makeFolder(path, options);
  }

  async list(prefix: string, options?: ListFilesOptions): Promise<FileList> {
    const { files, ...more } = await this.#files.list(prefix, options);
    return { files: files.filter(({ path }) => this.#rights.mayRead(path)), ...more };
  }

  async children(folder: string, options?: ChildrenOptions): Promise<EntryList> {
    if (!this.#rights.maySee(folder)) throw missing(folder);
    const { entries, ...more } = await this.#files.children(folder, options);
    return { entries: entries.filter((entry) => this.#isSeen(entry)), ...more };
  }

  /** A user may follow only folders that are readable as a whole, so no change of other files is revealed. */
  changes(folder: string, options?: ChangesOptions): AsyncIterable<ChangeBatch> {
    this.mustRead(folder);
    return this.#files.changes(folder, options);
  }

  async remove(path: string, options?: RemoveOptions): Promise<void> {
    this.#mustReplace(path);
    if (options?.pruneIn !== undefined) this.mustWrite(options.pruneIn);
    return this.#files.remove(path, options);
  }

  async touch(path: string, options: TouchOptions): Promise<void> {
    this.mustWrite(path);
    return this.#files.touch(path, options);
  }

  async rename(from: string, to: string, options?: MoveOptions): Promise<boolean> {
    this.mustRead(from);
    this.#mustReplace(from);
    this.#mustReplace(to);
    return this.#files.rename(from, to, options);
  }

  async copy(from: string, to: string, options?: CopyOptions): Promise<boolean> {
    this.mustRead(from);
    this.#mustReplace(to);
    return this.#files.copy(from, to, options);
  }

  nodes(options?: FileCallOptions): Promise<NodesReport> {
    return this.#files.nodes(options);
  }

  async changeNodes(change: NodesChange, options?: NodesOptions): Promise<NodesReport> {
    // Nodes hold the files of all users, so this needs the right to everything.
    this.mustWrite("");
    return this.#files.changeNodes(change, options);
  }

  async setQuota(folder: string, quota: Quota | null, options?: FileCallOptions): Promise<void> {
    // Quotas limit users who have rights only to a folder, so they need the right to everything.
    if (!this.#rights.mayWrite("")) throw denied("the user may not set quotas");
    return this.#files.setQuota(folder, quota, options);
  }

  status(): FilesStatus {
    return this.#files.status();
  }

  close(): Promise<void> {
    return this.#files.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * A user cannot remove or replace the folder or file to which its right refers, and so can't remove that
   * folder's quota.
   */
  #mustReplace(path: string): void {
    if (!this.#rights.mayReplace(path)) throw denied(`the user may not replace ${JSON.stringify(path)}`);
  }

  /** @throws LeaseholdError `FILE_NOT_FOUND` */
  mustRead(path: string): void {
    if (!this.#rights.mayRead(path)) throw missing(path);
  }

  #isSeen({ kind, path }: Entry): boolean {
    return kind === "folder" ? this.#rights.maySee(path) : this.#rights.mayRead(path);
  }
}

const denied = (why: string): LeaseholdError => new LeaseholdError("PERMISSION_DENIED", why);

const missing = (path: string): LeaseholdError =>
  new LeaseholdError("FILE_NOT_FOUND", `there is no ${JSON.stringify(path)} that the user may read`);
