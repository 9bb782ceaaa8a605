import { opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import { sameBytes } from "../../delta/record/envelope.js";
import type { StoreAnswer, StoreTraits } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";
import { Gate, operationsAtOnce } from "../common/gate.js";
import { ioError } from "../common/io-error.js";
import type { ReplaceRequest, AtomicMedium } from "../common/atomic-store.js";
import { discard, ignoringFailure, isThere } from "./files.js";
import { findOrMakeMarker, homeName } from "./marker.js";
import { type Cell, RegisterDirectory, registerIn } from "./register-directory.js";

/** A writer that is beaten to it looks again; each time another has written. */
const racesMax = 100;

/**
 * What a killed process was building is removed when it has been there for so long, ms. Younger ones may
 * still be wanted.
 */
const abandonedMs = 3_600_000;

/** What is seen of a register, and of which store. */
interface Seen {
  readonly id: string;
  readonly register: RegisterDirectory;
  readonly cell: Cell | undefined;
}

/** A directory that processes share, on a disk of this machine or at a file server. */
export class DirectoryMedium implements AtomicMedium {
  readonly traits: StoreTraits;
  readonly #root: string;
  readonly #device: number;
  readonly #gate = new Gate(operationsAtOnce());
  #id: string | undefined;

  constructor(root: string, device: number, traits: StoreTraits) {
    this.#root = root;
    this.#device = device;
    this.traits = traits;
  }

  read(name: string): Promise<StoreAnswer> {
    return this.#gate.run(async () => {
      const { id, cell } = await this.#look(name);
      return { kind: "cells", id, cells: contents(cell) };
    });
  }

  replace({ register: name, id, expected, next }: ReplaceRequest): Promise<StoreAnswer> {
    return this.#gate.run(async () => {
      for (let races = 0; races < racesMax; races += 1) {
        const seen = await this.#look(name);
        if (isContent(seen.cell, next) && seen.id === id) return { kind: "written", id };
        if (seen.id !== id || !isContent(seen.cell, expected)) {
          return { kind: "conflict", id: seen.id, cells: contents(seen.cell) };
        }
        const isDone =
          seen.cell === undefined
            ? await seen.register.create(next)
            : await seen.register.replace(seen.cell, next);
        if (isDone) return { kind: "written", id };
      }
      throw new LeaseholdError("STORE_UNAVAILABLE", `${name} is written all the time`);
    });
  }

  list(prefix: string, registersMax: number): Promise<StoreAnswer> {
    return this.#gate.run(async () => {
      const id = await this.#currentId();
      const registers = new Map<string, readonly Uint8Array[]>();
      const place = this.#placeOf(id);
      for await (const { name: directory } of await opendir(place)) {
        if (registers.size >= registersMax) break;
        const register = await registerIn(place, directory);
        if (register === undefined || !register.startsWith(prefix)) continue;
        const cell = await new RegisterDirectory(place, register, this.traits.bytesMax).read();
        if (cell !== undefined) registers.set(register, [cell.content]);
      }
      return { kind: "registers", id, registers };
    });
  }

  /** Removes what processes that were killed long ago have left behind. */
  async clean(): Promise<void> {
    const place = this.#placeOf(await this.#currentId());
    for (const folder of [this.#root, place]) {
      for await (const { name } of await opendir(folder)) {
        if (!/^(?:new|old)-[0-9a-f-]{36}$/.test(name)) continue;
        await ignoringFailure(async () => {
          const { mtimeMs } = await stat(join(folder, name));
          if (Date.now() - mtimeMs > abandonedMs) await discard(folder, join(folder, name));
        });
      }
    }
  }

  failure(error: unknown): LeaseholdError {
    return ioError(this.traits.name, error);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** What the register holds, with the marker of the store that it was seen on. */
  async #look(name: string): Promise<Seen> {
    for (let looks = 0; looks < racesMax; looks += 1) {
      const id = (this.#id ??= await this.#findMarker());
      const register = new RegisterDirectory(this.#placeOf(id), name, this.traits.bytesMax);
      const cell = await register.read();
      if (cell !== undefined) return { id, register, cell };
      // A missing register is believed only where its store is there, and after a look that no cache answers.
      if (await isThere(this.#placeOf(id))) return { id, register, cell: await register.read() };
      this.#id = undefined;
    }
    throw new LeaseholdError("STORE_UNAVAILABLE", `${this.#root} is replaced again and again`);
  }

  async #currentId(): Promise<string> {
    if (this.#id === undefined || !(await isThere(this.#placeOf(this.#id))))
      this.#id = await this.#findMarker();
    return this.#id;
  }

  async #findMarker(): Promise<string> {
    const { dev } = await stat(this.#root);
    if (dev === this.#device) return findOrMakeMarker(this.#root);
    throw new LeaseholdError(
      "STORE_UNAVAILABLE",
      `${this.#root} is on another file system than when it was opened: something was mounted or unmounted`,
    );
  }

  #placeOf(id: string): string {
    return join(this.#root, homeName, id);
  }
}

function contents(cell: Cell | undefined): Uint8Array[] {
  return cell === undefined ? [] : [cell.content];
}

function isContent(cell: Cell | undefined, content: Uint8Array | undefined): boolean {
  return cell === undefined || content === undefined
    ? cell?.content === content
    : sameBytes(cell.content, content);
}
