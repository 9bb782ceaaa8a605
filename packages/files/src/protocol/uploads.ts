import { backOffMs, getOrInsert, LeaseholdError, Pauses, timeLeft } from "leasehold/common";
import type { BlockStore, StoredBlock } from "../ports.js";
import { forEachOf } from "./each.js";
import { isLeaseholdError } from "./failures.js";
import { uploadPrefix } from "./keys.js";
import type { Asks, HoldAnswer } from "./messages.js";
import type { NodeParts } from "./settings.js";
import type { Standings } from "./standings.js";
import { Turns, wholeFile } from "./turns.js";

/** An upload is synced after this many blocks, so that the last sync has little left to do. */
const blocksPerSync = 32;
/** Missing blocks that are fetched concurrently. */
const blocksAtOnce = 4;
/** The tag of a block of zeros, which is stored without its bytes. */
export const zerosTag = "0.z";

/** The nodes that have a content, as far as a reader knows. */
export interface Where {
  nodes: readonly string[];
  /** These nodes have the whole content. If this node is one of them, it keeps the blocks that it lacked. */
  keeps: boolean;
}

/** A hash of bytes: equal bytes have equal hashes, and different bytes rarely do. */
export type Checksum = (bytes: Uint8Array) => number;

export function tagOfBlock(checksum: Checksum, bytes: Uint8Array): string {
  return checksum(bytes).toString(36);
}

export function checksumOfTags(checksum: Checksum, tags: readonly string[]): number {
  return checksum(new TextEncoder().encode(tags.join(" ")));
}

/**
 * One node's copies of immutable contents. A content has a single writer, and nobody else knows the content
 * until it has a name. So its blocks need neither a lease nor an order, and a missing block may come from any
 * node.
 */
export class Uploads {
  readonly #store: BlockStore;
  readonly #standings: Standings;
  readonly #parts: NodeParts;
  /** The nodes on which the names place a content. */
  readonly placementOf: (content: string) => Promise<readonly string[]>;
  readonly #checksum: Checksum;
  readonly #pauses: Pauses;
  /** By content, while in use. */
  readonly #turns = new Map<string, Turns>();
  /** When each content was last used here, by the steady clock. */
  readonly #usedMs = new Map<string, number>();
  /** Contents whose collection has begun: the node neither stores them nor reports having them. */
  readonly #condemned = new Set<string>();

  constructor(
    store: BlockStore,
    standings: Standings,
    parts: NodeParts,
    placementOf: (content: string) => Promise<readonly string[]>,
    checksum: Checksum,
  ) {
    this.#store = store;
    this.#standings = standings;
    this.#parts = parts;
    this.placementOf = placementOf;
    this.#checksum = checksum;
    this.#pauses = new Pauses(parts.world.timers);
  }

  async piece({ content, index, tag }: Asks["piece"], bytes: Uint8Array): Promise<void> {
    this.#assertWanted(content);
    if (tag !== zerosTag && tagOfBlock(this.#checksum, bytes) !== tag)
      throw new LeaseholdError("FILE_DAMAGED", `block ${index} of a content was damaged on its way`);
    if (!(await this.#store.hasRoom(bytes.length))) throw new LeaseholdError("STORE_FULL");
    await this.#inTurn(content, { from: index, to: index, changes: true }, () =>
      this.#write(content, index, tag, bytes),
    );
    if (index % blocksPerSync === blocksPerSync - 1) await this.#store.sync(uploadPrefix + content);
  }

  /**
   * Whether the whole content is on disk here, after spending some time to fetch missing blocks.
   * @param pace awaited before each block
   */
  async hold(
    { content, blocks, checksum, tag, nodes }: Asks["hold"],
    bytes: Uint8Array,
    pace: () => Promise<void> = () => Promise.resolve(),
  ): Promise<HoldAnswer> {
    if (tag !== null) await this.piece({ content, index: 0, tag }, bytes);
    const { clock } = this.#parts.world;
    const left = timeLeft(() => clock.monotonicMs(), this.#parts.settings.answerTimeoutMs / 2);
    for (let failed = 0; ; failed += 1) {
      this.#assertWanted(content);
      const missing = await this.#missing(content, blocks);
      if (missing.length === 0) {
        await this.#inTurn(content, wholeFile, () => this.#syncWhole(content, blocks, checksum));
        return this.#answer(0);
      }
      const before = missing.length;
      await forEachOf(missing, blocksAtOnce, async (index) => {
        if (left() === 0) return;
        await pace();
        await this.#fetch(content, index, nodes, true);
      }).catch(() => undefined);
      const now = (await this.#missing(content, blocks)).length;
      if (now > 0 && left() === 0) return this.#answer(now);
      if (now === before)
        await this.#pauses.pause(Math.min(left(), backOffMs(this.#parts.world.random, failed, 20, 200)));
    }
  }

  /**
   * Indices of blocks that are missing here. Nothing is synced: the caller must not treat the others as
   * durable.
   */
  async missing(content: string, blocks: number): Promise<readonly number[]> {
    return this.#missing(content, blocks);
  }

  /**
   * Reads an intact block of this node.
   * @throws LeaseholdError `FILE_DAMAGED`
   */
  async bit(content: string, index: number): Promise<StoredBlock> {
    this.touch(content);
    const block = await this.#readHere(content, index);
    if (block !== undefined) return block;
    throw new LeaseholdError("FILE_DAMAGED", `this node does not have block ${index} of that content`);
  }

  /**
   * Reads a block from this node or another. If the block belongs here and was missing or damaged, it is
   * restored.
   * @param where the nodes that have the content; updated if they have changed
   */
  async read(content: string, index: number, where: Where): Promise<StoredBlock> {
    this.touch(content);
    const here = await this.#readHere(content, index);
    if (here !== undefined) return here;
    const { clock, random } = this.#parts.world;
    const left = timeLeft(() => clock.monotonicMs(), this.#parts.settings.operationTimeoutMs);
    for (let failed = 0; ; failed += 1) {
      try {
        return await this.#fetchAnywhere(content, index, where);
      } catch (error) {
        if (left() === 0 || !isLeaseholdError(error, "NO_QUORUM")) throw error;
        await this.#pauses.pause(Math.min(left(), backOffMs(random, failed, 20, 500)));
      }
    }
  }

  async isDamaged(content: string, index: number): Promise<boolean> {
    try {
      await this.#store.readBlock(uploadPrefix + content, index);
      return false;
    } catch (error) {
      return isLeaseholdError(error, "STORE_CORRUPT");
    }
  }

  touch(content: string): void {
    this.#usedMs.set(content, this.#parts.world.clock.monotonicMs());
  }

  /**
   * How long the content has been unused here. The use of a content from an earlier process counts from the
   * first time that this process looks at it.
   */
  idleMs(content: string): number {
    const nowMs = this.#parts.world.clock.monotonicMs();
    return nowMs - getOrInsert(this.#usedMs, content, () => nowMs);
  }

  /**
   * Removes a content, if it may be removed. Before it asks, the node stops storing the content and reporting
   * that it has it, so no upload relies on a copy that is about to be removed.
   */
  async collect(content: string, mayBeRemoved: () => Promise<boolean>): Promise<boolean> {
    this.#condemned.add(content);
    try {
      return await this.#inTurn(content, wholeFile, async () => {
        if (!(await mayBeRemoved())) return false;
        await this.#store.removeFile(uploadPrefix + content);
        this.#usedMs.delete(content);
        return true;
      });
    } finally {
      this.#condemned.delete(content);
    }
  }

  /** The writer has abandoned it, and nobody else knows it. */
  async discard({ content }: Asks["discard"]): Promise<void> {
    await this.collect(content, () => Promise.resolve(true));
  }

  close(): void {
    this.#pauses.end();
  }

  async #write(content: string, index: number, tag: string, bytes: Uint8Array): Promise<void> {
    this.#assertWanted(content);
    this.touch(content);
    const key = uploadPrefix + content;
    await this.#store.create(key, "1");
    await this.#store.writeBlock(key, index, tag, bytes);
  }

  async #syncWhole(content: string, blocks: number, checksum: number): Promise<void> {
    const key = uploadPrefix + content;
    await this.#store.sync(key);
    const entries = (await this.#store.listBlocks(key)).filter(({ index }) => index < blocks);
    const tags = entries.map(({ tag }) => tag ?? "");
    if (entries.length !== blocks || checksumOfTags(this.#checksum, tags) !== checksum)
      throw new LeaseholdError("FILE_DAMAGED", "the blocks of a content are not those that were sent");
  }

  async #missing(content: string, blocks: number): Promise<number[]> {
    const entries = await this.#store.listBlocks(uploadPrefix + content);
    const here = new Set(entries.filter(({ tag }) => tag !== undefined).map(({ index }) => index));
    return Array.from({ length: blocks }, (_, index) => index).filter((index) => !here.has(index));
  }

  async #readHere(content: string, index: number): Promise<StoredBlock | undefined> {
    try {
      return await this.#store.readBlock(uploadPrefix + content, index);
    } catch (error) {
      if (isLeaseholdError(error, "STORE_CORRUPT")) return undefined;
      throw error;
    }
  }

  /** The names may have placed the content on other nodes since the caller looked. */
  async #fetchAnywhere(content: string, index: number, where: Where): Promise<StoredBlock> {
    for (;;) {
      const { nodes } = where;
      try {
        return await this.#fetch(content, index, nodes, where.keeps && nodes.includes(this.#parts.node));
      } catch (error) {
        const now = await this.placementOf(content);
        // The content no longer has a name, or is where it was.
        if (now.length === 0 || now.join() === nodes.join()) throw error;
        where.nodes = now;
        where.keeps = true;
      }
    }
  }

  /** @param keeps also whether the block belongs here */
  async #fetch(
    content: string,
    index: number,
    nodes: readonly string[],
    keeps: boolean,
  ): Promise<StoredBlock> {
    const { node, peers, settings } = this.#parts;
    const failures: string[] = [];
    let isDamaged = true;
    for (const other of nodes.filter((each) => each !== node)) {
      try {
        const { answerTimeoutMs: timeoutMs } = settings;
        const { answer, body } = await peers.ask(other, "bit", { content, index }, { timeoutMs });
        const { tag } = answer;
        if (keeps) await this.#keep(content, index, tag, body);
        return { tag, bytes: body };
      } catch (error) {
        isDamaged &&= isLeaseholdError(error, "FILE_DAMAGED", "STORE_CORRUPT");
        failures.push(`${other}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    // A node that has not answered may have the block.
    throw new LeaseholdError(
      isDamaged ? "FILE_DAMAGED" : "NO_QUORUM",
      `no node that answers has block ${index} of content ${content}: ${failures.join("; ")}`,
    );
  }

  async #keep(content: string, index: number, tag: string, bytes: Uint8Array): Promise<void> {
    await this.piece({ content, index, tag }, bytes).catch((error: unknown) => {
      if (!isLeaseholdError(error, "STORE_FULL", "STORE_FORGOTTEN")) throw error;
    });
  }

  #answer(missing: number): HoldAnswer {
    const { node, store } = this.#standings;
    return { node, disk: store, missing };
  }

  #assertWanted(content: string): void {
    this.#standings.assertListed();
    if (this.#condemned.has(content))
      throw new LeaseholdError("STORE_FORGOTTEN", "the content is being collected here");
  }

  async #inTurn<T>(content: string, scope: typeof wholeFile, work: () => Promise<T>): Promise<T> {
    const turns = getOrInsert(this.#turns, content, () => new Turns());
    try {
      return await turns.run(scope, work);
    } finally {
      if (turns.isIdle) this.#turns.delete(content);
    }
  }
}
