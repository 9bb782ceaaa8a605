import type { Pauses } from "leasehold/common";
import type { BlockStore } from "../ports.js";
import { forEachOf } from "./each.js";
import { isLeaseholdError } from "./failures.js";
import { tryToJoin } from "./join.js";
import { pathsPerPage } from "./messages.js";
import type { Router } from "./router.js";
import type { NodeParts } from "./settings.js";
import type { Standings } from "./standings.js";

/** Between two looks at what is to be done, ms. */
const lookEveryMs = 500;
/** A node with many files looks at all of them less often: so much longer for each, ms. */
const pausePerFileMs = 0.2;
/** Files that are brought up to date at one node at the same time. */
const filesAtOnce = 4;

/** What a node does by itself: joins, takes over what it lacks, brings others up to date, scrubs its disk. */
export class Upkeep {
  readonly reachable = new Map<string, boolean>();
  readonly counters = { scrubbed: 0, damaged: 0, repaired: 0 };
  rebuilding: { left: number; readonly total: number } | undefined;
  readonly #parts: NodeParts;
  readonly #store: BlockStore;
  readonly #standings: Standings;
  readonly #router: Router;
  readonly #pauses: Pauses;
  #isClosed = false;
  #loops: Promise<unknown> = Promise.resolve();

  constructor(parts: NodeParts, store: BlockStore, standings: Standings, router: Router, pauses: Pauses) {
    this.#parts = parts;
    this.#store = store;
    this.#standings = standings;
    this.#router = router;
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
   * Again and again; what fails is tried again after the pause.
   *
   * @param work answers how many files it has looked at, beside those that it has worked on
   */
  async #again(pauseMs: number, work: () => Promise<number | void>): Promise<void> {
    while (!this.#isClosed) {
      const filesSeen = (await work().catch(() => undefined)) ?? 0;
      if (!this.#isClosed) await this.#pauses.pause(pauseMs + filesSeen * pausePerFileMs);
    }
  }

  async #look(): Promise<void> {
    const { peers, replica, settings, nodes, node: self } = this.#parts;
    this.#router.tidy();
    if (!this.#standings.joined) {
      await tryToJoin(this.#standings, replica, peers, settings.answerTimeoutMs);
      return;
    }
    await Promise.all(nodes.filter((node) => node !== self).map((node) => this.#lookAfter(node)));
  }

  /** Another node: whether it is there, and what it lacks of the files whose primary is here. */
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
    const behind = [...this.#router.primaries].filter((primary) => primary.copies.behind.has(node));
    await forEachOf(behind, filesAtOnce, async ({ copies }) => {
      if (!copies.isEnded) await copies.catchUp(node);
    });
  }

  /** Files that this node's disk had and lost: their primaries make its copies complete. */
  async #takeOverAll(): Promise<number> {
    if (!this.#standings.joined) return 0;
    const unknown: string[] = [];
    let known = 0;
    for await (const path of this.#paths()) {
      if ((await this.#parts.replica.meta(path)).base === undefined) unknown.push(path);
      else known += 1;
    }
    this.rebuilding = unknown.length === 0 ? undefined : { left: unknown.length, total: unknown.length };
    await forEachOf(unknown, filesAtOnce, async (path) => {
      if (this.#isClosed) return;
      await this.#router.operate(path, { kind: "sync", lacks: this.#parts.node }).catch((error: unknown) => {
        // Its primary has made the copies complete before it said so.
        if (!isLeaseholdError(error, "FILE_NOT_FOUND")) throw error;
      });
      if (this.rebuilding !== undefined) this.rebuilding.left -= 1;
    });
    // Removed files have no copies to complete, and would be found again for ever.
    if (this.rebuilding?.left === 0) this.rebuilding = undefined;
    return known;
  }

  /** Reads all that lies on the disk, slowly, and repairs what it finds damaged. */
  async #scrub(): Promise<void> {
    if (!this.#standings.joined) return;
    for await (const path of this.#paths()) {
      for (const index of (await this.#parts.replica.tags(path)).keys()) {
        if (this.#isClosed) return;
        await this.#pauses.pause(this.#parts.settings.scrubPauseMs);
        await this.#scrubBlock(path, index);
      }
    }
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
        // Another may have it.
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
