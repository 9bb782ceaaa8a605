import type { Pauses } from "leasehold/common";
import type { BlockStore } from "../ports.js";
import { forEachOf } from "./each.js";
import { isLeaseholdError } from "./failures.js";
import { tryToJoin } from "./join.js";
import { pathsPerPage } from "./messages.js";
import { namesKey, uploadPrefix } from "./keys.js";
import type { Router } from "./router.js";
import type { NodeParts } from "./settings.js";
import type { Standings } from "./standings.js";
import type { Uploads } from "./uploads.js";

/** The pause between two rounds of upkeep, ms. */
const lookEveryMs = 500;
/** The additional pause per file, ms: a node with many files checks each less often. */
const pausePerFileMs = 0.2;
/** Files completed concurrently at one node. */
const filesAtOnce = 4;

/**
 * The background work of a node: it joins, copies what it lacks, completes other nodes' copies and scrubs its
 * disk.
 */
export class Upkeep {
  readonly reachable = new Map<string, boolean>();
  readonly counters = { scrubbed: 0, damaged: 0, repaired: 0 };
  rebuilding: { left: number; readonly total: number } | undefined;
  readonly #parts: NodeParts;
  readonly #store: BlockStore;
  readonly #standings: Standings;
  readonly #contacts: readonly string[];
  readonly #router: Router;
  readonly #uploads: Uploads;
  readonly #pauses: Pauses;
  #isClosed = false;
  #loops: Promise<unknown> = Promise.resolve();

  constructor(
    parts: NodeParts,
    store: BlockStore,
    standings: Standings,
    contacts: readonly string[],
    router: Router,
    uploads: Uploads,
    pauses: Pauses,
  ) {
    this.#parts = parts;
    this.#store = store;
    this.#standings = standings;
    this.#contacts = contacts;
    this.#router = router;
    this.#uploads = uploads;
    this.#pauses = pauses;
  }

  begin(): void {
    this.#loops = Promise.all([
      this.#again(lookEveryMs, () => this.#look()),
      this.#again(lookEveryMs, () => this.#takeOverAll()),
      this.#again(this.#parts.settings.scrubPauseMs, () => this.#scrub()),
    ]);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pauses.end();
    await this.#loops;
  }

  /**
   * Repeats the work, also after a failure, with a pause in between.
   * @param work resolves with the number of files that it checked without having to work on them
   */
  async #again(pauseMs: number, work: () => Promise<number | void>): Promise<void> {
    while (!this.#isClosed) {
      const filesSeen = (await work().catch(() => undefined)) ?? 0;
      if (!this.#isClosed) await this.#pauses.pause(pauseMs + filesSeen * pausePerFileMs);
    }
  }

  async #look(): Promise<void> {
    const { peers, replica, settings, everybody, node: self } = this.#parts;
    this.#router.tidy();
    if (!this.#standings.joined) {
      await tryToJoin(this.#standings, this.#contacts, replica, peers, settings.answerTimeoutMs);
      return;
    }
    for (const node of this.reachable.keys()) if (!everybody.includes(node)) this.reachable.delete(node);
    await Promise.all(everybody.filter((node) => node !== self).map((node) => this.#lookAfter(node)));
  }

  /** Checks whether another node is present, and completes its copies of the files whose primary is here. */
  async #lookAfter(node: string): Promise<void> {
    const { peers, settings } = this.#parts;
    try {
      const { answer } = await peers.ask(node, "standing", {}, { timeoutMs: settings.answerTimeoutMs });
      this.reachable.set(node, true);
      if (!answer.joined) return;
    } catch {
      this.reachable.set(node, false);
      return;
    }
    const behind = this.#router.tenures.filter(({ copies }) => copies.behind.has(node));
    await forEachOf(behind, filesAtOnce, async ({ copies }) => {
      if (!copies.isEnded) await copies.catchUp(node);
    });
  }

  /** Recovers the files that this node's disk lost, by having their primaries complete its copies. */
  async #takeOverAll(): Promise<number> {
    if (!this.#standings.joined) return 0;
    const unknown: string[] = [];
    let known = 0;
    for await (const path of this.#paths()) {
      if (path.startsWith(uploadPrefix)) break;
      if ((await this.#parts.replica.meta(path)).base === undefined) unknown.push(path);
      else known += 1;
    }
    this.rebuilding = unknown.length === 0 ? undefined : { left: unknown.length, total: unknown.length };
    await forEachOf(unknown, filesAtOnce, async (path) => {
      if (this.#isClosed) return;
      await this.#completeHere(path);
      if (this.rebuilding !== undefined) this.rebuilding.left -= 1;
    });
    // Removed files have no copies to complete, so they would be found again and again.
    if (this.rebuilding?.left === 0) this.rebuilding = undefined;
    return known;
  }

  /** The file's primary completes the copies before it answers. */
  async #completeHere(path: string): Promise<void> {
    const { node } = this.#parts;
    const sync = { kind: "sync", lacks: node, sealed: true } as const;
    const operation =
      path === namesKey
        ? this.#router.names({ kind: "complete", lacks: node })
        : this.#router.operate(path, sync);
    await operation.catch((error: unknown) => {
      if (!isLeaseholdError(error, "FILE_NOT_FOUND")) throw error;
    });
  }

  /** Reads the whole disk slowly, and repairs damaged blocks. */
  async #scrub(): Promise<void> {
    if (!this.#standings.joined) return;
    for await (const path of this.#paths()) {
      for (const { index } of await this.#store.listBlocks(path)) {
        if (this.#isClosed) return;
        await this.#pauses.pause(this.#parts.settings.scrubPauseMs);
        if (path.startsWith(uploadPrefix)) await this.#scrubUpload(path.slice(uploadPrefix.length), index);
        else await this.#scrubBlock(path, index);
      }
    }
  }

  async #scrubUpload(content: string, index: number): Promise<void> {
    this.counters.scrubbed += 1;
    if (!(await this.#uploads.isDamaged(content, index))) return;
    this.counters.damaged += 1;
    const isRepaired = await this.#uploads.read(content, index, { nodes: [], keeps: true }).then(
      () => true,
      () => false,
    );
    if (isRepaired) this.counters.repaired += 1;
  }

  async #scrubBlock(path: string, index: number): Promise<void> {
    const { replica, peers, nodes, node: self, settings } = this.#parts;
    this.counters.scrubbed += 1;
    try {
      await replica.read(path, index);
      return;
    } catch (error) {
      if (!isLeaseholdError(error, "STORE_CORRUPT")) return;
    }
    this.counters.damaged += 1;
    const tag = (await replica.tags(path)).get(index);
    if (tag === undefined) return;
    const { answerTimeoutMs: timeoutMs } = settings;
    for (const node of nodes.filter((other) => other !== self)) {
      try {
        const { body } = await peers.ask(node, "fetch", { path, index, tag }, { timeoutMs });
        await replica.repair(path, index, tag, body);
        this.counters.repaired += 1;
        return;
      } catch {
        // Another node may have the block.
      }
    }
  }

  async *#paths(): AsyncGenerator<string> {
    for (let after = ""; ;) {
      const paths = await this.#store.listFiles("", after, pathsPerPage);
      yield* paths;
      if (paths.length < pathsPerPage) return;
      after = paths.at(-1)!;
    }
  }
}
