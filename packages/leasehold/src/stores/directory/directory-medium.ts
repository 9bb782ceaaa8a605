import type { Dir } from "node:fs";
import { opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import { sameBytes } from "../../delta/record/envelope.js";
import type { StoreAnswer, StoreTraits } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";
import { ThreadLimiter, operationsMax } from "../common/thread-limiter.js";
import { ioError } from "../common/io-error.js";
import type { ReplaceRequest, AtomicMedium } from "../common/atomic-store.js";
import { Files, ignoringFailure } from "./files.js";
import { findOrMakeMarker, homeName } from "./marker.js";
import { type Cell, RegisterDirectory, registerIn } from "./register-directory.js";

/** The maximum number of retries of a writer that loses races; each time another writer has succeeded. */
const racesMax = 100;

/** The age at which leftovers of a killed process are removed, ms. Younger ones may still be in use. */
const abandonedMs = 3_600_000;

/** The number of entries of a list that are read concurrently, which keeps the threads busy. */
const readsAtOnce = 16;

/** The maximum number of registers whose content is cached: about 15 megabytes. Others are read again. */
const rememberedMax = 32_768;

/** A register's content and the store that has it. */
interface Seen {
  readonly id: string;
  readonly register: RegisterDirectory;
  readonly cell: Cell | undefined;
}

/**
 * A directory that processes share, on a disk of this machine or on a file server. Operations run
 * concurrently and interleave at every call: while one waits for the disk, others write, so the disk flushes
 * many together.
 */
export class DirectoryMedium implements AtomicMedium {
  readonly traits: StoreTraits;
  readonly #root: string;
  readonly #device: number;
  readonly #namesHoldContent: boolean;
  /**
   * The number of operations is bounded, and each makes a few concurrent calls. None of these calls may be
   * refused, because files would then stay open.
   */
  readonly #limiter = new ThreadLimiter({ waitingMax: Infinity });
  readonly #files = new Files(this.#limiter);
  /**
   * The most recent content of registers on the store with the marker `#id`. A version's content never
   * changes.
   */
  readonly #remembered = new Map<string, Cell>();
  #id: string | undefined;
  #finding: Promise<string> | undefined;
  #underWay = 0;

  constructor(root: string, device: number, namesHoldContent: boolean, traits: StoreTraits) {
    this.#root = root;
    this.#device = device;
    this.#namesHoldContent = namesHoldContent;
    this.traits = traits;
  }

  read(name: string): Promise<StoreAnswer> {
    return this.#bounded(async () => {
      const { id, cell } = await this.#look(name);
      return { kind: "cells", id, cells: contents(cell) };
    });
  }

  replace({ register: name, id, expected, next }: ReplaceRequest): Promise<StoreAnswer> {
    return this.#bounded(async () => {
      // Content that was last written or read here need not be read again: if it were gone, the version's
      // name would be gone, too.
      const known = this.#id === id ? this.#remembered.get(name) : undefined;
      let seen: Seen | undefined;
      if (known !== undefined && isContent(known, expected))
        seen = { id, register: this.#register(id, name), cell: known };
      for (let races = 0; races < racesMax; races += 1) {
        seen ??= await this.#look(name);
        const { cell, register } = seen;
        const isThere = cell !== undefined && isContent(cell, next);
        if (seen.id !== id || !(isThere || isContent(cell, expected)))
          return { kind: "conflict", id: seen.id, cells: contents(cell) };
        const written = await (isThere
          ? register.rewrite(cell)
          : cell === undefined
            ? register.create(next)
            : register.replace(cell, next));
        if (written !== undefined) {
          if (this.#id === id) this.#remember(name, written);
          return { kind: "written", id };
        }
        seen = undefined;
      }
      throw new LeaseholdError("STORE_UNAVAILABLE", `${name} is being written all the time`);
    });
  }

  list(prefix: string, registersMax: number): Promise<StoreAnswer> {
    return this.#bounded(async () => {
      const id = await this.#currentId();
      const registers = new Map<string, readonly Uint8Array[]>();
      const place = this.#placeOf(id);
      const entries = await this.#limiter.run(() => opendir(place));
      try {
        for (let isWhole = false; !isWhole && registers.size < registersMax;) {
          const some = await this.#limiter.run(() => nextOf(entries, readsAtOnce));
          isWhole = some.length < readsAtOnce;
          await Promise.all(
            some.map(async (directory) => {
              const register = await registerIn(this.#files, place, directory);
              if (register === undefined || !register.startsWith(prefix)) return;
              const cell = await this.#register(id, register).read(undefined);
              if (cell !== undefined && registers.size < registersMax)
                registers.set(register, [cell.content]);
            }),
          );
        }
      } finally {
        await this.#limiter.run(() => entries.close());
      }
      return { kind: "registers", id, registers };
    });
  }

  /** Removes leftovers of processes that were killed long ago. */
  async clean(): Promise<void> {
    const place = this.#placeOf(await this.#currentId());
    for (const folder of [this.#root, place]) {
      for await (const { name } of await opendir(folder)) {
        if (!/^(?:new|old)-[0-9a-f-]{36}$/.test(name)) continue;
        await ignoringFailure(async () => {
          const { mtimeMs } = await stat(join(folder, name));
          if (Date.now() - mtimeMs > abandonedMs) await this.#files.discard(folder, join(folder, name));
        });
      }
    }
  }

  failure(error: unknown): LeaseholdError {
    return ioError(this.traits.name, error);
  }

  close(): Promise<void> {
    this.#limiter.close();
    return Promise.resolve();
  }

  /** Callers abandon operations that hang, but the number of these must stay bounded. */
  async #bounded(operation: () => Promise<StoreAnswer>): Promise<StoreAnswer> {
    if (this.#underWay === operationsMax)
      throw new LeaseholdError(
        "STORE_UNAVAILABLE",
        `it hangs: ${operationsMax} operations are already queued`,
      );
    this.#underWay += 1;
    try {
      return await operation();
    } finally {
      this.#underWay -= 1;
    }
  }

  /** The register's content, with the marker of its store. */
  async #look(name: string): Promise<Seen> {
    for (let looks = 0; looks < racesMax; looks += 1) {
      const id = this.#id ?? (await this.#findId());
      const register = this.#register(id, name);
      let cell = await register.read(this.#remembered.get(name));
      // A register counts as missing only if its store exists, and only after a read that bypasses caches.
      if (cell === undefined) {
        if (!(await this.#files.isThere(this.#placeOf(id)))) {
          if (this.#id === id) this.#id = undefined;
          continue;
        }
        cell = await register.read(undefined);
      }
      if (this.#id === id) this.#remember(name, cell);
      return { id, register, cell };
    }
    throw new LeaseholdError("STORE_UNAVAILABLE", `${this.#root} is replaced again and again`);
  }

  #remember(name: string, cell: Cell | undefined): void {
    this.#remembered.delete(name);
    if (cell === undefined) return;
    this.#remembered.set(name, cell);
    if (this.#remembered.size > rememberedMax) this.#remembered.delete(this.#remembered.keys().next().value!);
  }

  #register(id: string, name: string): RegisterDirectory {
    const place = this.#placeOf(id);
    return new RegisterDirectory(this.#files, place, name, this.traits.bytesMax, this.#namesHoldContent);
  }

  async #currentId(): Promise<string> {
    const id = this.#id;
    if (id !== undefined && (await this.#files.isThere(this.#placeOf(id)))) return id;
    return this.#findId();
  }

  /** Shared by all callers that miss it at the same time. */
  #findId(): Promise<string> {
    this.#finding ??= this.#findMarker().finally(() => (this.#finding = undefined));
    return this.#finding;
  }

  async #findMarker(): Promise<string> {
    const { dev } = await this.#limiter.run(() => stat(this.#root));
    if (dev !== this.#device)
      throw new LeaseholdError(
        "STORE_UNAVAILABLE",
        `${this.#root} is no longer on the file system on which it was opened: something was mounted or unmounted`,
      );
    const id = await findOrMakeMarker(this.#files, this.#root);
    if (id !== this.#id) this.#remembered.clear();
    this.#id = id;
    return id;
  }

  #placeOf(id: string): string {
    return join(this.#root, homeName, id);
  }
}

/** Reads up to `count` further names. */
async function nextOf(entries: Dir, count: number): Promise<string[]> {
  const names: string[] = [];
  while (names.length < count) {
    const entry = await entries.read();
    if (entry === null) break;
    names.push(entry.name);
  }
  return names;
}

function contents(cell: Cell | undefined): Uint8Array[] {
  return cell === undefined ? [] : [cell.content];
}

function isContent(cell: Cell | undefined, content: Uint8Array | undefined): boolean {
  return cell === undefined || content === undefined
    ? cell?.content === content
    : sameBytes(cell.content, content);
}
