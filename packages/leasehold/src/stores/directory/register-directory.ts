import { join } from "node:path";
import { decodeEnvelope, encodeEnvelope } from "../../delta/record/envelope.js";
import { LeaseholdError } from "../../lease/errors.js";
import { allEnded, type Files, ignoringFailure, isMissing } from "./files.js";
import {
  directoryOfRegister,
  makeNamedVersion,
  makeVersion,
  parseVersion,
  registerOfDirectory,
  type Version,
} from "./names.js";

/** A file in directories whose name is a hash: an envelope with the register's name. */
const nameFile = "name";
const nameFormat = "leasehold-register/1";
const nameFileBytesMax = 4_096;

/**
 * The maximum number of retries of a reader that finds the token renamed. Each time a writer has made
 * progress.
 */
const looksMax = 100;

/**
 * A writer removes the leftovers of killed writers, and of those that lost a race, once in this number of
 * writes.
 */
const writesPerCleaning = 16;

export interface Cell {
  readonly version: Version;
  readonly content: Uint8Array;
}

/**
 * One register: a directory that contains exactly one *token*. The token is a directory whose name is the
 * version and which contains the content (`names.ts`).
 *
 * To replace it, a writer renames the token to the next version. A rename is atomic, even on a file server,
 * and requires that the old name exists; and no name occurs twice. So at most one of the processes that read
 * a content replaces it, and one that was stopped in between, for any time, finds the old name gone. There
 * are no locks that could be left behind, and nothing has to be repaired: until the rename the register has
 * the old content, after it the new one.
 *
 * Content that is too long for a name is written to a file and made durable before the rename. Content that
 * fits into a name becomes durable with the name, which takes one sync instead of three.
 */
export class RegisterDirectory {
  readonly register: string;
  readonly #files: Files;
  readonly #place: string;
  readonly #directory: string;
  readonly #path: string;
  readonly #isHashed: boolean;
  readonly #bytesMax: number;
  readonly #namesHoldContent: boolean;

  /** @param namesHoldContent true if the probe found that the file system supports such names */
  constructor(files: Files, place: string, register: string, bytesMax: number, namesHoldContent: boolean) {
    const { directory, isHashed } = directoryOfRegister(register);
    this.register = register;
    this.#files = files;
    this.#place = place;
    this.#directory = directory;
    this.#path = join(place, directory);
    this.#isHashed = isHashed;
    this.#bytesMax = bytesMax;
    this.#namesHoldContent = namesHoldContent;
  }

  /**
   * The content; `undefined` if the register or the whole store is missing. `known` is the former content: a
   * version's content never changes, so only a different version has to be read.
   */
  async read(known: Cell | undefined): Promise<Cell | undefined> {
    for (let looks = 0; looks < looksMax; looks += 1) {
      const names = await this.#files.namesIn(this.#path);
      if (names === undefined) return undefined;
      // More than one name means that the token was renamed during the listing.
      const version = greatestVersion(names);
      if (version === undefined) continue;
      if (version.name === known?.version.name) return known;
      if (version.content !== undefined) return { version, content: version.content };
      const path = join(this.#path, version.name, version.name);
      const content = await this.#files.contentOf(path, this.#bytesMax + 1);
      if (content === undefined) continue;
      if (content.length > this.#bytesMax) throw this.#foreign("content that is too long");
      return { version, content };
    }
    throw this.#foreign("no content in it");
  }

  /** Creates the register with this content. `undefined` if it already exists or its parent is gone. */
  async create(content: Uint8Array): Promise<Cell | undefined> {
    const version = this.#versionOf(1, content);
    const isNew = await this.#files.appear(this.#place, this.#directory, async (path) => {
      const token = join(path, version.name);
      await this.#files.make(token);
      if (this.#isHashed) {
        const name = encodeEnvelope(nameFormat, JSON.stringify(this.register));
        await this.#files.writeSynced(join(path, nameFile), name);
      }
      if (version.content !== undefined) await this.#files.syncDirectories([token, path]);
      else await this.#files.writeSynced(join(token, version.name), content, [token, path]);
    });
    return isNew ? { version, content } : undefined;
  }

  /** Replaces a cell that was read. `undefined` if the cell has changed. */
  async replace(cell: Cell, content: Uint8Array): Promise<Cell | undefined> {
    const version = this.#versionOf(cell.version.number + 1, content);
    const token = join(this.#path, cell.version.name);
    const nextToken = join(this.#path, version.name);
    try {
      if (version.content === undefined) await this.#writeBeside(join(token, version.name), content, token);
      // After a failure the candidate is not removed: a file server may later perform an operation that it
      // reported as failed.
      await this.#files.rename(token, nextToken);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
    // The creator of the first version may have stopped before the register's own name was durable.
    const isFirst = cell.version.number === 1;
    await this.#sync(isFirst);
    // Only after the new name is durable: after a power loss the old one may be back.
    if (cell.version.content === undefined) await this.#files.remove(join(nextToken, cell.version.name));
    if (version.number % writesPerCleaning === 0)
      await ignoringFailure(() => clean(this.#files, nextToken, version));
    return { version, content };
  }

  /**
   * Writes the present content again, because it may not be durable: the sync of an earlier call may have
   * failed, which the system reports only once. `undefined` if the content has changed.
   */
  async rewrite(cell: Cell): Promise<Cell | undefined> {
    const written = await this.replace(cell, cell.content);
    if (written !== undefined) await this.#sync(true);
    return written;
  }

  /** Syncs the register's version, and the register's own name if necessary. */
  async #sync(withName: boolean): Promise<void> {
    const version = this.#files.syncDirectory(this.#path);
    await allEnded(withName ? [version, this.#files.syncDirectoryTogether(this.#place)] : [version]);
  }

  /** Writes the content of the next version as a file in the token, with its name. */
  async #writeBeside(path: string, content: Uint8Array, token: string): Promise<void> {
    try {
      await this.#files.writeSynced(path, content, [token]);
    } catch (error) {
      await this.#files.remove(path);
      throw error;
    }
  }

  #versionOf(number: number, content: Uint8Array): Version {
    return (this.#namesHoldContent ? makeNamedVersion(number, content) : undefined) ?? makeVersion(number);
  }

  #foreign(what: string): LeaseholdError {
    return new LeaseholdError("STORE_FOREIGN", `${this.#path}: found ${what}`);
  }
}

function greatestVersion(names: readonly string[]): Version | undefined {
  let greatest: Version | undefined;
  for (const name of names) {
    const version = parseVersion(name);
    if (version !== undefined && (greatest === undefined || version.number > greatest.number))
      greatest = version;
  }
  return greatest;
}

/**
 * Removes leftovers in a token with numbers up to the present one. A file with a greater number may be about
 * to become the content, so a late cleaner that still has a handle of an old name must not remove it.
 */
export async function clean(files: Files, token: string, present: Version): Promise<void> {
  for (const name of (await files.namesIn(token)) ?? []) {
    const version = parseVersion(name);
    if (version === undefined || version.number > present.number || name === present.name) continue;
    await files.remove(join(token, name));
  }
}

/** The name of a directory's register; `undefined` if it has none or is being created. */
export async function registerIn(
  files: Files,
  place: string,
  directory: string,
): Promise<string | undefined> {
  if (!directory.startsWith("h-")) return registerOfDirectory(directory);
  const envelope = await files.contentOf(join(place, directory, nameFile), nameFileBytesMax);
  if (envelope === undefined) return undefined;
  const register = decodeEnvelope(nameFormat, envelope);
  if (typeof register === "string" && directoryOfRegister(register).directory === directory) return register;
  throw new LeaseholdError("STORE_CORRUPT", `${join(place, directory, nameFile)} names another register`);
}
