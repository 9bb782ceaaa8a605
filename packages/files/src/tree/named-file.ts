import { LeaseholdError, timeLeft } from "leasehold/common";
import { fixedReader } from "../contents/reader.js";
import { emptyContent } from "../names/types.js";
import { partsOf } from "../names/state.js";
import type { Content, FileEntry, Part, PutChange } from "../names/types.js";
import { isLeaseholdError } from "../protocol/failures.js";
import type { FilesNode } from "../protocol/files-node.js";
import { bytesPerCallMax, noBytes, type Operation, type OperationResult } from "../protocol/messages.js";
import { FileMethods } from "../protocol/open-file.js";
import type { Outcome } from "../protocol/serving.js";
import { livePrefix } from "../protocol/keys.js";
import { fileIn, liveVersion, type NamesClient, type Wish } from "./names-client.js";

type FileOutcome = Outcome<OperationResult>;

/** The longest pause before the name is looked up again, ms. */
const pauseMsMax = 20;

/**
 * An open file. It looks up its name, and caches the content if that is written in place. Before such a
 * content is moved, shared or removed it is sealed, and the seal makes this file look up its name again.
 */
export class NamedFile extends FileMethods {
  readonly #objects: FilesNode;
  readonly #names: NamesClient;
  readonly #newId: () => string;
  #live: string | undefined;

  constructor(objects: FilesNode, names: NamesClient, path: string, newId: () => string) {
    super(path, objects.parts.settings.blockSize);
    this.#objects = objects;
    this.#names = names;
    this.#newId = newId;
  }

  protected async operate(
    operation: Operation,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<FileOutcome> {
    const { world, settings } = this.#objects.parts;
    const left = timeLeft(() => world.clock.monotonicMs(), settings.operationTimeoutMs);
    for (;;) {
      try {
        return this.#live === undefined
          ? await this.#lookAndTry(operation, bytes, signal)
          : await this.#tryLive(this.#live, operation, bytes, signal);
      } catch (error) {
        const mustLook = error instanceof Superseded || isLeaseholdError(error, "FILE_CHANGED");
        const isGone = this.#live !== undefined && isLeaseholdError(error, "FILE_NOT_FOUND");
        this.#live = undefined;
        if (!mustLook && !isGone) throw error;
        if (left() === 0) throw new LeaseholdError("NO_QUORUM", `${this.path} changes all the time`);
        await this.#pause(Math.min(left(), world.random.next() * pauseMsMax));
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#objects.parts.world.timers.after(ms, resolve));
  }

  async #lookAndTry(
    operation: Operation,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<FileOutcome> {
    const looked = await this.#names.look(this.path, signal);
    const entry = fileIn(looked.entry, this.path);
    const isReading = operation.kind === "read" || operation.kind === "stat" || operation.kind === "sync";
    const { content } = entry;
    if (isReading && !content.isLive) return this.#readFixed(entry, looked.nodes, operation, signal);
    // The name was looked up during this call, so even a sealed content was current at that moment.
    if (isReading) return this.#tryLive(content.id, { ...operation, sealed: true }, bytes, signal, true);
    if (content.isLive) {
      try {
        return await this.#tryLive(content.id, operation, bytes, signal, true);
      } catch (error) {
        if (!isLeaseholdError(error, "FILE_CHANGED")) throw error;
      }
    }
    await this.#makeLive(entry, looked.nodes, signal);
    throw new Superseded();
  }

  /** @param isNew whether the name was looked up for this call; the content may be gone since */
  async #tryLive(
    content: string,
    operation: Operation,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
    isNew = false,
  ): Promise<FileOutcome> {
    try {
      const { router } = this.#objects;
      const outcome = await router.operate(livePrefix + content, operation, bytes, signal);
      this.#live = content;
      const { path } = this;
      const { stat } = outcome.result;
      const named = { ...stat, path, version: liveVersion(stat.version, content) };
      return { ...outcome, result: { ...outcome.result, stat: named } };
    } catch (error) {
      if (isNew && isLeaseholdError(error, "FILE_NOT_FOUND")) throw new Superseded();
      throw error;
    }
  }

  async #readFixed(
    { content, version, modifiedMs }: FileEntry,
    nodes: readonly string[],
    operation: Operation,
    signal: AbortSignal | undefined,
  ): Promise<FileOutcome> {
    const { size, blockSize } = content;
    const stat = { path: this.path, size, version, modifiedMs };
    const result: OperationResult = { stat, blockSize };
    if (operation.kind === "read") {
      const { offset, length } = operation;
      const bytes = await fixedReader(this.#objects.uploads, content, nodes)(offset, length);
      return { result, bytes };
    }
    if (operation.kind === "sync")
      return {
        result: { ...result, nodes: await this.#nodesThatHold(content, nodes, signal) },
        bytes: noBytes,
      };
    return { result, bytes: noBytes };
  }

  /** Waits for the nodes of an immutable content to fetch it, and returns the number that have all of it. */
  async #nodesThatHold(
    content: Content,
    among: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<number> {
    let fewest = Infinity;
    for (const part of partsOf(content)) {
      const isWhole = content.parts === undefined;
      const nodes = isWhole ? among : await this.#objects.uploads.placementOf(part.id);
      fewest = Math.min(fewest, await this.#nodesWith(part, nodes, signal));
    }
    return fewest === Infinity ? this.#objects.parts.nodes.length : fewest;
  }

  async #nodesWith(part: Part, nodes: readonly string[], signal: AbortSignal | undefined): Promise<number> {
    const { peers, settings } = this.#objects.parts;
    const { id, size, blockSize, checksum } = part;
    const hold = { content: id, blocks: Math.ceil(size / blockSize), checksum, tag: null, nodes };
    const asked = nodes.map(async (node) => {
      for (let left = Infinity; ;) {
        const options = { timeoutMs: settings.operationTimeoutMs, signal };
        const { missing } = (await peers.ask(node, "hold", hold, options)).answer;
        if (missing === 0 || missing >= left) return missing === 0;
        left = missing;
      }
    });
    const settled = await Promise.allSettled(asked);
    return settled.filter((each) => each.status === "fulfilled" && each.value).length;
  }

  /**
   * Copies the content to one that is written in place, and gives that to the name if it still has the old
   * content.
   */
  async #makeLive(
    entry: FileEntry,
    nodes: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { path } = this;
    const id = this.#newId();
    const { content: old } = entry;
    const content: Content = { ...emptyContent, id, isLive: true };
    const wish: Wish<PutChange> = {
      kind: "put",
      path,
      content,
      makeFolders: false,
      ifMissing: false,
      ifVersion: null,
      ifContent: old.id,
    };
    const sealed = old.isLive ? [old.id] : [];
    try {
      await this.#names.announce({ ...wish, sealed }, [], signal);
      await this.#copyTo(id, old, nodes, signal);
      await this.#names.ask({ kind: "commit", change: { ...wish, sealed } }, signal);
      this.#live = id;
    } catch (error) {
      signal?.throwIfAborted();
      // Nothing of the caller's operation was done, so it can look up the name again.
      if (!(error instanceof LeaseholdError) || !mayTryAgain.has(error.code)) throw error;
    }
  }

  async #copyTo(
    id: string,
    old: Content,
    nodes: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { router, uploads } = this.#objects;
    const key = livePrefix + id;
    await router.operate(key, { kind: "open", create: "always" }, noBytes, signal);
    const size = old.isLive ? await this.#sizeOf(old.id, signal) : old.size;
    const fixed = fixedReader(uploads, old, nodes);
    let isHole = false;
    for (let offset = 0; offset < size; offset += bytesPerCallMax) {
      const length = Math.min(bytesPerCallMax, size - offset);
      const read = { kind: "read", offset, length, sealed: true } as const;
      const bytes = old.isLive
        ? (await router.operate(livePrefix + old.id, read, noBytes, signal)).bytes
        : await fixed(offset, length);
      // Holes stay holes.
      isHole = bytes.every((byte) => byte === 0);
      if (!isHole) await router.operate(key, { kind: "write", offset }, bytes, signal);
    }
    if (isHole) await router.operate(key, { kind: "truncate", size }, noBytes, signal);
  }

  async #sizeOf(content: string, signal: AbortSignal | undefined): Promise<number> {
    const stat = { kind: "stat", sealed: true } as const;
    return (await this.#objects.router.operate(livePrefix + content, stat, noBytes, signal)).result.stat.size;
  }
}

/** The content that the name had must no longer be used. */
class Superseded extends Error {}

const mayTryAgain: ReadonlySet<string> = new Set([
  "FILE_CHANGED",
  "FILE_NOT_FOUND",
  "FILE_EXISTS",
  "FILE_UNCERTAIN",
  "STORE_FORGOTTEN",
  "NO_QUORUM",
  "TIMEOUT",
]);
