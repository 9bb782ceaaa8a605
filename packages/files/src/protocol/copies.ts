import { backOffMs, majorityOf, Pauses, getOrInsert, LeaseholdError } from "leasehold/common";
import { isLeaseholdError, NowhereError } from "./failures.js";
import type { StoredBlock } from "../ports.js";
import { forEachOf } from "./each.js";
import {
  type Asks,
  type Answers,
  blocksPerPage,
  copiesPerSync,
  noBytes,
  type PromiseAnswer,
  type Vote,
} from "./messages.js";
import { headerText } from "./records.js";
import type { NodeParts } from "./settings.js";
import { validVotes } from "./standings.js";

/** Blocks of one file in flight to one node. */
const blocksAtOnce = 4;
/** Changes of one file queued for one node. A node that falls further behind catches up later. */
const changesAtOnceMax = 64;

const pauseBaseMs = 20;
const pauseMsMax = 1_000;

/** The requests that change a file at a replica. */
type Change = "put" | "header";

/**
 * All copies of one file, as the primary of one epoch sees them. A copy is *complete* when it has a mark of
 * this epoch; acknowledgements of other copies do not count.
 */
export class Copies {
  readonly path: string;
  readonly epoch: bigint;
  readonly #parts: NodeParts;
  readonly #pauses: Pauses;
  /** Nodes whose copy is incomplete or has missed a change. */
  readonly #behind: Set<string>;
  readonly #missed = new Set<string>();
  readonly #catchingUp = new Map<string, Promise<boolean>>();
  readonly #waiting = new Map<string, number>();
  /** Changes sent to a node and not yet answered, or waiting until its copy is complete. */
  readonly #underWay = new Set<Promise<void>>();
  readonly #ended = new AbortController();
  /** A replica refused the epoch because a later one has begun. */
  superseded = false;
  /** This node's copy has a damaged block, in a version that no other copy has. */
  hasLost = false;

  constructor(parts: NodeParts, path: string, epoch: bigint) {
    this.#parts = parts;
    this.path = path;
    this.epoch = epoch;
    this.#pauses = new Pauses(parts.world.timers);
    this.#behind = new Set(parts.nodes.filter((node) => node !== parts.node));
  }

  /** Nodes whose copy is incomplete. */
  get behind(): ReadonlySet<string> {
    return this.#behind;
  }

  get isEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Stops sending. */
  end(): void {
    this.#ended.abort();
    this.#pauses.end();
  }

  /** Collects the promises of a majority of copies that know the file. */
  async promises(left: () => number): Promise<PromiseAnswer[]> {
    const { path } = this;
    const votes: PromiseAnswer[] = [];
    const enough = (): PromiseAnswer[] | undefined => {
      const valid = validVotes(votes).filter(({ base }) => base !== null);
      return valid.length >= majorityOf(this.#parts.nodes.length) ? valid : undefined;
    };
    await this.#untilEnough(left, enough, async (node) => {
      votes.push(await this.#ask(node, "promise", { path, epoch: String(this.epoch) }, left));
    });
    return enough()!;
  }

  /** The tags of all blocks of one copy. */
  async tagsAt(node: string, incarnation: string): Promise<Map<number, string | null>> {
    const tags = new Map<number, string | null>();
    for (let after = -1; ;) {
      const { blocks } = await this.#ask(node, "blocks", { path: this.path, after, incarnation });
      for (const [index, tag] of blocks) tags.set(index, tag);
      if (blocks.length < blocksPerPage) return tags;
      after = blocks.at(-1)![0];
    }
  }

  /** Fetches a block in exactly this version from one of these nodes. */
  async fetch(index: number, tag: string, nodes: Iterable<string>): Promise<Uint8Array> {
    const { path } = this;
    const { signal } = this.#ended;
    const failures: string[] = [];
    let isDamaged = true;
    let isNowhere = true;
    for (const node of nodes) {
      if (signal.aborted) throw new LeaseholdError("NO_QUORUM", `the tenure of ${path} is over`);
      try {
        const { answerTimeoutMs: timeoutMs } = this.#parts.settings;
        const options = { timeoutMs, signal };
        const { body } = await this.#parts.peers.ask(node, "fetch", { path, index, tag }, options);
        return body;
      } catch (error) {
        isNowhere &&= isLeaseholdError(error, "FILE_DAMAGED");
        isDamaged &&= isLeaseholdError(error, "FILE_DAMAGED", "STORE_CORRUPT");
        failures.push(`${node}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    const message = `no node that answers has block ${index} of ${path} in version ${tag}: ${failures.join("; ")}`;
    if (isNowhere) throw new NowhereError("FILE_DAMAGED", message);
    // A node that has not answered may have the block.
    throw new LeaseholdError(isDamaged ? "FILE_DAMAGED" : "NO_QUORUM", message);
  }

  /** Reads a block of this node's own copy, and repairs it if it is damaged. */
  async readHere(index: number): Promise<StoredBlock | undefined> {
    const { node, nodes, replica } = this.#parts;
    try {
      return await replica.read(this.path, index);
    } catch (error) {
      const tag = (await replica.tags(this.path)).get(index);
      if (tag === undefined || !isLeaseholdError(error, "STORE_CORRUPT")) throw error;
      const others = nodes.filter((other) => other !== node);
      const bytes = await this.fetch(index, tag, others).catch((failure: unknown) => {
        this.hasLost ||= failure instanceof NowhereError;
        throw failure;
      });
      await replica.repair(this.path, index, tag, bytes);
      return { tag, bytes };
    }
  }

  /**
   * Resolves when a majority that includes this node has the change on disk. Rejects after the time limit;
   * some nodes may have the change by then.
   */
  async change<C extends Change>(kind: C, ask: Asks[C], body: Uint8Array, left: () => number): Promise<void> {
    const votes: Vote[] = [];
    let isDone = false;
    const enough = (): true | undefined => {
      const valid = validVotes(votes).filter(({ base }) => base === String(this.epoch));
      const isHere = valid.some(({ node }) => node === this.#parts.node);
      return isHere && valid.length >= majorityOf(this.#parts.nodes.length) ? true : undefined;
    };
    const send = async (node: string): Promise<void> => {
      try {
        votes.push(await this.#send(node, kind, ask, body, left));
      } catch (error) {
        if (node !== this.#parts.node) this.#miss(node);
        throw error;
      }
    };
    const tracked = (node: string): Promise<void> => {
      const sending = send(node);
      this.#underWay.add(sending);
      return sending.finally(() => this.#underWay.delete(sending));
    };
    await this.#untilEnough(left, enough, tracked, () => isDone);
    isDone = true;
  }

  /** Handles a node's report that it lost its copy: its acknowledgements in this tenure no longer count. */
  lackedBy(node: string): void {
    if (this.#parts.nodes.includes(node) && node !== this.#parts.node) this.#miss(node);
  }

  /** Resolves when each node has either acknowledged the changes begun so far or is known to be behind. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** Completes the copies at a majority. */
  async completeMajority(left: () => number): Promise<void> {
    let complete = 1;
    const needed = majorityOf(this.#parts.nodes.length);
    await this.#untilEnough(
      left,
      () => (complete >= needed ? true : undefined),
      async (node) => {
        if (node === this.#parts.node) return;
        if (!(await this.catchUp(node))) throw new LeaseholdError("UNREACHABLE", `${node} is not complete`);
        complete += 1;
      },
    );
  }

  /** Completes one node's copy. Resolves with false on failure. */
  catchUp(node: string): Promise<boolean> {
    return getOrInsert(this.#catchingUp, node, () =>
      this.#copyTo(node)
        .then(
          () => {
            if (this.#missed.has(node)) return false;
            this.#behind.delete(node);
            return true;
          },
          () => false,
        )
        .finally(() => this.#catchingUp.delete(node)),
    );
  }

  /**
   * Sends the blocks, then the header, then the removals. If this is interrupted, the copy has every
   * acknowledged block that its header, old or new, refers to.
   */
  async #copyTo(node: string): Promise<void> {
    const { path } = this;
    const { replica } = this.#parts;
    const epoch = String(this.epoch);
    this.#missed.delete(node);
    const { incarnation, header: theirs } = await this.#ask(node, "promise", { path, epoch });
    const there = await this.tagsAt(node, incarnation);
    const here = new Map(await replica.tags(path));
    const differing = [...here].filter(([index, tag]) => there.get(index) !== tag);
    let copied = 0;
    await forEachOf(differing, blocksAtOnce, async ([index]) => {
      const block = await this.readHere(index);
      if (block === undefined) return;
      const { tag, bytes } = block;
      const later = (copied += 1) % copiesPerSync !== 0;
      await this.#ask(node, "put", { path, epoch, index, tag, spare: false, later }, undefined, bytes);
    });
    const { header } = await replica.meta(path);
    // Done even if the file does not exist: a header that a reset has ruled out must not count with this
    // epoch's mark.
    const ours = header === undefined ? null : headerText(header);
    if (theirs !== ours) await this.#ask(node, "header", { path, epoch, header: ours });
    const strange = [...there.keys()].filter((index) => !here.has(index));
    await forEachOf(strange, blocksAtOnce, async (index) => {
      await this.#ask(node, "drop", { path, epoch, index });
    });
    await this.#ask(node, "mark", { path, epoch, incarnation });
  }

  async #send<C extends Change>(
    node: string,
    kind: C,
    ask: Asks[C],
    body: Uint8Array,
    left: () => number,
  ): Promise<Vote> {
    const waiting = this.#waiting.get(node) ?? 0;
    if (waiting >= changesAtOnceMax) throw new LeaseholdError("OVERLOADED", `${node} is slow`);
    this.#waiting.set(node, waiting + 1);
    try {
      if (this.#behind.has(node) && !(await this.catchUp(node)))
        throw new LeaseholdError("UNREACHABLE", `${node} is behind`);
      const vote: Vote = await this.#ask(node, kind, ask, left, body);
      if (vote.base === String(this.epoch)) return vote;
      throw new LeaseholdError("STORE_FORGOTTEN", `${node} has lost its copy`);
    } finally {
      this.#waiting.set(node, this.#waiting.get(node)! - 1);
    }
  }

  #miss(node: string): void {
    this.#behind.add(node);
    this.#missed.add(node);
  }

  async #ask<K extends Exclude<keyof Asks, "fetch">>(
    node: string,
    kind: K,
    ask: Asks[K],
    left: () => number = () => Infinity,
    body: Uint8Array = noBytes,
  ): Promise<Answers[K]> {
    const timeoutMs = Math.min(this.#parts.settings.answerTimeoutMs, left());
    const { signal } = this.#ended;
    try {
      return (await this.#parts.peers.ask(node, kind, ask, { timeoutMs, body, signal })).answer;
    } catch (error) {
      if (isLeaseholdError(error, "LEASE_LOST")) this.superseded = true;
      throw error;
    }
  }

  /**
   * Repeats the work at each node until enough have succeeded. Work in progress then continues, but none is
   * begun.
   */
  #untilEnough(
    left: () => number,
    enough: () => unknown,
    tryAt: (node: string) => Promise<void>,
    isDone: () => boolean = () => enough() !== undefined,
  ): Promise<void> {
    const { nodes, node: self, world } = this.#parts;
    return new Promise((resolve, reject) => {
      const failures = new Map<string, unknown>();
      const fail = (): void => reject(this.#failureOf(failures));
      const tries = nodes.map(async (node) => {
        for (let failed = 0; ; failed += 1) {
          try {
            await tryAt(node);
            if (enough() !== undefined) resolve();
            return;
          } catch (error) {
            failures.set(node, error);
            const isOver = this.isEnded || this.superseded || left() <= 0;
            if (isOver || (node === self && !isDone())) return fail();
            if (isLeaseholdError(error, "STORE_FULL")) return;
          }
          if (isDone() || enough() !== undefined) return;
          const pauseMs = backOffMs(world.random, failed, pauseBaseMs, pauseMsMax);
          await this.#pauses.pause(Math.min(pauseMs, left()));
          if (isDone()) return;
        }
      });
      // Every node has been asked, and too few succeeded.
      void Promise.all(tries).then(fail);
    });
  }

  #failureOf(failures: ReadonlyMap<string, unknown>): LeaseholdError {
    const told = [...failures].map(
      ([node, error]) => `${node}: ${error instanceof Error ? error.message : error}`,
    );
    const isFull = [...failures.values()].some((error) => isLeaseholdError(error, "STORE_FULL"));
    return new LeaseholdError(isFull ? "STORE_FULL" : "NO_QUORUM", `${this.path}: ${told.join("; ")}`, {
      cause: [...failures.values()][0],
    });
  }
}
