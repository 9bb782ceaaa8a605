import type { Pauses } from "leasehold/common";
import type { NamesOperation, NamesResult } from "../names/types.js";
import type { BlockStore } from "../ports.js";
import { forEachOf } from "../protocol/each.js";
import type { NodeParts } from "../protocol/settings.js";
import { livePrefix, uploadPrefix } from "../protocol/keys.js";
import type { Uploads } from "../protocol/uploads.js";

/** Contents in one question to the primary of names. */
const contentsPerPage = 500;
/** Contents that are filled concurrently. */
const contentsAtOnce = 4;

export interface SweepParts {
  readonly parts: NodeParts;
  readonly store: BlockStore;
  readonly uploads: Uploads;
  readonly ask: (operation: NamesOperation) => Promise<NamesResult>;
  /** Ends the primary of a content that is written in place, and removes this node's copy. */
  readonly collectLive: (key: string) => Promise<void>;
}

/**
 * Compares this node's contents with the names: it fetches contents that it lacks, and collects those without
 * a name. Names are asked twice, so that a content is kept for a while for its readers; the second question
 * comes when the node takes nothing of the content any more.
 */
export class Sweeper {
  /** Contents that this node lacks, and those that it has looked at; undefined when nothing was lacking. */
  filling: { left: number; readonly total: number } | undefined;
  readonly counters = { collected: 0, filled: 0 };
  readonly #sweep: SweepParts;
  readonly #pauses: Pauses;
  #isClosed = false;
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

  /** One pass over all names. */
  async #fill(): Promise<void> {
    const { ask, uploads } = this.#sweep;
    for (let after = ""; !this.#isClosed;) {
      const { contents = [], next } = await ask({ kind: "contents", after, limit: contentsPerPage });
      const lacking: (typeof contents)[number][] = [];
      for (const content of contents) {
        const blocks = Math.ceil(content.size / content.blockSize);
        if ((await uploads.missing(content.id, blocks)).length > 0) lacking.push(content);
      }
      if (lacking.length > 0) this.filling = { left: lacking.length, total: lacking.length };
      await forEachOf(lacking, contentsAtOnce, async ({ id, size, blockSize, checksum }) => {
        const hold = { content: id, blocks: Math.ceil(size / blockSize), checksum, tag: null };
        for (let left = Infinity; left > 0 && !this.#isClosed;) {
          const { missing } = await uploads.hold(hold, new Uint8Array(0));
          if (missing >= left) return;
          left = missing;
        }
        if (this.filling !== undefined) this.filling.left -= 1;
        this.counters.filled += 1;
      }).catch(() => undefined);
      if (next === undefined) break;
      after = next;
      if (lacking.length === 0) await this.#pause();
    }
    // A name may have been removed meanwhile: what is still lacking, the next pass finds.
    this.filling = undefined;
  }

  /** One pass over this node's contents of one kind; returns those that no name has. */
  async #markAndCollect(prefix: string, before: UnnamedSince): Promise<UnnamedSince> {
    const { store, ask, parts } = this.#sweep;
    const marked = new Map<string, number>();
    for (let after = prefix; !this.#isClosed;) {
      const keys = await store.listFiles(prefix, after, contentsPerPage);
      const contents = keys.map((key) => key.slice(prefix.length));
      if (contents.length === 0) break;
      const { unnamed = [] } = await ask({ kind: "unnamed", contents });
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
      const { unnamed = [] } = await ask({ kind: "unnamed", contents: [content] });
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

/** Contents without a name, and since when this is known, by the steady clock. */
type UnnamedSince = ReadonlyMap<string, number>;
