import { LeaseholdError, type Pauses } from "leasehold/common";
import type { Holder } from "../names/nodes.js";
import type { NamesOperation, NamesResult, PlacedContent } from "../names/types.js";
import type { BlockStore } from "../ports.js";
import { forEachOf } from "../protocol/each.js";
import type { Asks } from "../protocol/messages.js";
import type { NodeParts } from "../protocol/settings.js";
import { livePrefix, uploadPrefix } from "../protocol/keys.js";
import type { Uploads } from "../protocol/uploads.js";

/** Contents asked about in one request to the primary of names. */
const contentsPerPage = 500;
/** Contents filled concurrently. */
const contentsAtOnce = 4;

export interface SweepParts {
  readonly parts: NodeParts;
  readonly store: BlockStore;
  readonly uploads: Uploads;
  readonly ask: (operation: NamesOperation) => Promise<NamesResult>;
  /** Ends the primary of a content that is written in place, and removes this node's copy of the content. */
  readonly collectLive: (key: string) => Promise<void>;
}

/**
 * Compares this node's contents with the names. It fetches blocks that are missing, copies contents that have
 * been placed on this node, and collects contents that have no name or are placed elsewhere. It asks the
 * names twice before it collects a content: the delay gives readers time to finish, and the second answer
 * comes when the node no longer accepts blocks of it.
 */
export class Sweeper {
  /**
   * Contents with blocks missing here: how many are left to check, and the total. Undefined if nothing was
   * missing.
   */
  filling: { left: number; readonly total: number } | undefined;
  readonly counters = { collected: 0, filled: 0, placed: 0 };
  readonly #sweep: SweepParts;
  readonly #pauses: Pauses;
  #isClosed = false;
  /** The earliest time of the next fetch, by the steady clock. */
  #freeAtMs = -Infinity;
  #loops: Promise<unknown> = Promise.resolve();

  constructor(sweep: SweepParts, pauses: Pauses) {
    this.#sweep = sweep;
    this.#pauses = pauses;
  }

  begin(): void {
    this.#loops = Promise.all([
      this.#again(() => this.#fill()),
      this.#collectAgain(uploadPrefix),
      this.#collectAgain(livePrefix),
    ]);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pauses.end();
    await this.#loops;
  }

  get #nowMs(): number {
    return this.#sweep.parts.world.clock.monotonicMs();
  }

  async #again(work: () => Promise<void>): Promise<void> {
    while (!this.#isClosed) {
      if (this.#sweep.parts.isJoined()) await work().catch(() => undefined);
      await this.#pause();
    }
  }

  async #collectAgain(prefix: string): Promise<void> {
    let before: UnnamedSince = new Map();
    await this.#again(async () => {
      before = await this.#markAndCollect(prefix, before);
    });
  }

  async #pause(): Promise<void> {
    if (!this.#isClosed) await this.#pauses.pause(this.#sweep.parts.settings.sweepPauseMs);
  }

  /** Makes one pass over all names. */
  async #fill(): Promise<void> {
    const { ask, uploads, parts } = this.#sweep;
    for (let after = ""; !this.#isClosed;) {
      const { contents = [], next } = await ask({
        kind: "contents",
        node: parts.node,
        after,
        limit: contentsPerPage,
      });
      const lacking: PlacedContent[] = [];
      for (const content of contents)
        if (content.step !== undefined || (await uploads.missing(content.id, blocksOf(content))).length > 0)
          lacking.push(content);
      if (lacking.length > 0) this.filling = { left: lacking.length, total: lacking.length };
      await forEachOf(lacking, contentsAtOnce, async (content) => {
        const holder = await this.#take(content).catch(() => undefined);
        if (this.filling !== undefined) this.filling.left -= 1;
        if (holder === undefined) return;
        this.counters.filled += 1;
        await this.#place(content, holder).catch(() => undefined);
      });
      if (next === undefined) break;
      after = next;
      if (lacking.length === 0) await this.#pause();
    }
    // A name may have been removed meanwhile. The next pass finds what is still missing.
    this.filling = undefined;
  }

  /** Fetches the missing blocks of a content. Undefined if no node provides them. */
  async #take(content: PlacedContent): Promise<Holder | undefined> {
    const { uploads, parts } = this.#sweep;
    for (let left = Infinity; !this.#isClosed;) {
      const pace = () => this.#pace(Math.min(content.size, content.blockSize));
      const { missing, node, disk } = await uploads.hold(holdOf(content), new Uint8Array(0), pace);
      if (missing === 0) return { node, disk };
      if (missing >= left) return undefined;
      left = missing;
    }
    throw new LeaseholdError("CLOSED", `node ${parts.node} was closed`);
  }

  /** Limits the rate, so that rebalancing leaves disk and network capacity for programs' calls. */
  async #pace(bytes: number): Promise<void> {
    const waitMs = Math.max(0, this.#freeAtMs - this.#nowMs);
    const perMs = this.#sweep.parts.settings.rebalanceBytesPerS / 1_000;
    this.#freeAtMs = this.#nowMs + waitMs + bytes / perMs;
    if (waitMs > 0 && !this.#isClosed) await this.#pauses.pause(waitMs);
  }

  /**
   * Takes the step that the names ask of this node. The nodes of the new placement report that they have the
   * content on disk; the names check that they form a majority that includes the new node.
   */
  async #place(content: PlacedContent, here: Holder): Promise<void> {
    const { parts, ask } = this.#sweep;
    const { id, nodes: before, step } = content;
    if (step === undefined) return;
    const others = step.nodes.filter((node) => node !== parts.node);
    const { operationTimeoutMs: timeoutMs } = parts.settings;
    const asked = await Promise.allSettled(
      others.map((node) => parts.peers.ask(node, "hold", holdOf(content), { timeoutMs })),
    );
    const holders = [here];
    for (const each of asked)
      if (each.status === "fulfilled" && each.value.answer.missing === 0)
        holders.push({ node: each.value.answer.node, disk: each.value.answer.disk });
    await ask({ kind: "commit", change: { kind: "place", content: id, before, ...step, holders } });
    this.counters.placed += 1;
  }

  /** Makes one pass over this node's contents of one kind. Returns those that no name has. */
  async #markAndCollect(prefix: string, before: UnnamedSince): Promise<UnnamedSince> {
    const { store, ask, parts } = this.#sweep;
    const marked = new Map<string, number>();
    for (let after = prefix; !this.#isClosed;) {
      const keys = await store.listFiles(prefix, after, contentsPerPage);
      const contents = keys.map((key) => key.slice(prefix.length));
      if (contents.length === 0) break;
      const { unnamed = [] } = await ask({ kind: "unnamed", contents, node: parts.node });
      for (const content of unnamed) {
        const sinceMs = before.get(content) ?? this.#nowMs;
        const isLongSo = this.#nowMs - sinceMs >= parts.settings.graceMs;
        if (!isLongSo || !(await this.#collect(prefix, content))) marked.set(content, sinceMs);
      }
      if (keys.length < contentsPerPage) break;
      after = keys.at(-1)!;
      await this.#pause();
    }
    return marked;
  }

  async #collect(prefix: string, content: string): Promise<boolean> {
    const { parts, uploads, ask, collectLive } = this.#sweep;
    const isUnnamed = async (): Promise<boolean> => {
      const { unnamed = [] } = await ask({ kind: "unnamed", contents: [content], node: parts.node });
      return unnamed.includes(content);
    };
    if (prefix === uploadPrefix) {
      if (uploads.idleMs(content) < parts.settings.graceMs) return false;
      if (!(await uploads.collect(content, isUnnamed))) return false;
    } else {
      if (!(await isUnnamed())) return false;
      await collectLive(livePrefix + content);
    }
    this.counters.collected += 1;
    return true;
  }
}

const blocksOf = ({ size, blockSize }: PlacedContent): number => Math.ceil(size / blockSize);

function holdOf(content: PlacedContent): Asks["hold"] {
  const { id, checksum, nodes } = content;
  return { content: id, blocks: blocksOf(content), checksum, tag: null, nodes };
}

/** Contents without a name, and since when that has been known, by the steady clock. */
type UnnamedSince = ReadonlyMap<string, number>;
