import { randomUUID } from "node:crypto";
import * as nodeFiles from "node:fs/promises";
import { join } from "node:path";
import { stale } from "./errors.js";
import type { Fence } from "./fence.js";
import { checkToken } from "./token.js";

/** One file of a guarded folder. */
export interface FileChange {
  /** The file's name: one segment, which does not begin with a dot. */
  readonly name: string;
  /** Its whole content; undefined removes it. */
  readonly content: string | Uint8Array | undefined;
}

/** The part of `node:fs/promises` that is used. */
export type FileSystem = Pick<
  typeof nodeFiles,
  "link" | "mkdir" | "open" | "readdir" | "readFile" | "rename" | "rm" | "writeFile"
>;

/** One token in the names of the root, at most both. */
interface Seen {
  readonly token: bigint;
  readonly isFolder: boolean;
}

/** No folder is empty: a rename would replace it. */
const filler = ".fence";

/** A read retries when a newer holder has removed its folder. */
const triesMax = 20;

/**
 * A folder of files on a local file system. Each token has a folder of its own, ROOT/TOKEN; the folder with
 * the greatest token is the current one. A new holder creates its folder as a copy of the previous one, made
 * of hard links, and then renames its new files into it. A late write therefore ends in a folder that is no
 * longer read, however long its process was stopped and at whichever point. There is no lock to hold or lose.
 *
 * Programs read files with `read`, or get the folder from `path`. A new token costs one link for each file. A
 * write costs two listings of the root, on top of the flush, rename and flush of any atomic and durable
 * write.
 *
 * Requirement: a local file system, where a rename is atomic and all processes see a finished operation. NFS
 * does not qualify, nor does a folder that a tool synchronizes. Programs must replace files through this
 * fence and never change them in place.
 */
export class DirectoryFence implements Fence<FileChange> {
  readonly #root: string;
  readonly #files: FileSystem;

  /** @param root a folder that only this fence uses; it is created */
  constructor(root: string, files: FileSystem = nodeFiles) {
    this.#root = root;
    this.#files = files;
  }

  /**
   * Replaces or removes a file, durably. Each file is replaced as a whole. Several writes are not atomic
   * together.
   *
   * @throws FenceError `TOKEN_STALE`: the write is not visible. Exception: the greater token arrived during
   *   this call, and the write precedes all of its writes. `TOKEN_INVALID`
   */
  async write(token: bigint, { name, content }: FileChange): Promise<void> {
    checkToken(token);
    if (!/^[^./\\\0][^/\\\0]*$/.test(name)) throw new RangeError(`${JSON.stringify(name)} is no file's name`);
    await this.claim(token);
    const folder = this.#folderOf(token);
    try {
      await this.#replace(folder, name, content);
    } catch (error) {
      // The holder of a greater token has removed the folder.
      if (isMissing(error)) await this.#refuseStale(token);
      throw error;
    }
    // A greater token that arrived before the rename may have copied the folder without this file.
    this.#refuseIn(await this.#seen(), token);
  }

  async claim(token: bigint): Promise<void> {
    checkToken(token);
    const seen = await this.#seen();
    this.#refuseIn(seen, token);
    if (seen.some((each) => each.token === token && each.isFolder)) return;
    await this.#files.mkdir(this.#root, { recursive: true });
    // Create the mark before the copy: a smaller token's write that ends without seeing the mark is in the
    // copy.
    await this.#files.writeFile(join(this.#root, `${nameOf(token)}.claim`), "");
    try {
      await this.#copy(token);
    } catch (error) {
      if (isMissing(error)) await this.#refuseStale(token);
      throw error;
    }
    const after = await this.#seen();
    this.#refuseIn(after, token);
    await this.#removeBelow(token, after);
  }

  async greatest(): Promise<bigint> {
    return (await this.#seen()).reduce((most, { token }) => (token > most ? token : most), 0n);
  }

  /** Returns the content of a file, or undefined if there is none. */
  async read(name: string): Promise<Buffer | undefined> {
    for (let tries = 1; ; tries++) {
      const folder = await this.path();
      if (folder === undefined) return undefined;
      try {
        return await this.#files.readFile(join(folder, name));
      } catch (error) {
        if (!isMissing(error)) throw error;
        if ((await this.path()) === folder) return undefined;
        if (tries === triesMax) throw error;
      }
    }
  }

  /** Returns the folder to read from until another holder writes; undefined before the first token. */
  async path(): Promise<string | undefined> {
    const last = lastFolder(await this.#seen());
    return last === undefined ? undefined : this.#folderOf(last.token);
  }

  #folderOf(token: bigint): string {
    return join(this.#root, nameOf(token));
  }

  async #replace(folder: string, name: string, content: FileChange["content"]): Promise<void> {
    if (content === undefined) {
      // Without `force`, so that a missing folder throws. A missing file is fine.
      await this.#files.readFile(join(folder, filler));
      await this.#files.rm(join(folder, name), { force: true });
    } else {
      const fresh = join(folder, `.${randomUUID()}`);
      await this.#flush(fresh, "wx", content);
      await this.#files.rename(fresh, join(folder, name));
    }
    await this.#flush(folder, "r");
  }

  /** Creates the folder of a new token, with the files of the previous one. */
  async #copy(token: bigint): Promise<void> {
    const before = lastFolder(await this.#seen());
    const fresh = join(this.#root, `.${randomUUID()}`);
    await this.#files.mkdir(fresh);
    try {
      await this.#files.writeFile(join(fresh, filler), "");
      if (before !== undefined && before.token < token) {
        const from = this.#folderOf(before.token);
        for (const name of await this.#files.readdir(from))
          if (!name.startsWith(".")) await this.#link(join(from, name), join(fresh, name));
      }
      await this.#flush(fresh, "r");
      await this.#files.rename(fresh, this.#folderOf(token));
    } catch (error) {
      await this.#files.rm(fresh, { recursive: true, force: true });
      // Another process of the same tenure created the folder first.
      if (!isCode(error, "ENOTEMPTY") && !isCode(error, "EEXIST")) throw error;
    }
    await this.#flush(this.#root, "r");
  }

  async #link(from: string, to: string): Promise<void> {
    try {
      await this.#files.link(from, to);
    } catch (error) {
      // A smaller token removed the file while it was being copied.
      if (!isMissing(error)) throw error;
    }
  }

  async #flush(path: string, flags: string, content?: string | Uint8Array): Promise<void> {
    const file = await this.#files.open(path, flags);
    try {
      if (content !== undefined) await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  async #removeBelow(token: bigint, seen: readonly Seen[]): Promise<void> {
    for (const each of seen)
      if (each.token < token) {
        const name = nameOf(each.token);
        await this.#files.rm(join(this.#root, each.isFolder ? name : `${name}.claim`), {
          recursive: true,
          force: true,
        });
      }
  }

  async #refuseStale(token: bigint): Promise<void> {
    this.#refuseIn(await this.#seen(), token);
  }

  #refuseIn(seen: readonly Seen[], token: bigint): void {
    if (seen.some((each) => each.token > token)) throw stale(this.#root, token);
  }

  /** The names are few, so Linux lists them in one call under the folder's lock: a listing misses nothing. */
  async #seen(): Promise<Seen[]> {
    const names = await this.#files.readdir(this.#root).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    return names.flatMap((name) => {
      const [, digits, claim] = /^(\d{19})(\.claim)?$/.exec(name) ?? [];
      return digits === undefined ? [] : [{ token: BigInt(digits), isFolder: claim === undefined }];
    });
  }
}

function nameOf(token: bigint): string {
  return String(token).padStart(19, "0");
}

function lastFolder(seen: readonly Seen[]): Seen | undefined {
  return seen
    .filter(({ isFolder }) => isFolder)
    .reduce<Seen | undefined>(
      (last, each) => (last !== undefined && last.token > each.token ? last : each),
      undefined,
    );
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function isMissing(error: unknown): boolean {
  return isCode(error, "ENOENT");
}
