import { backOffMs, LeaseholdError, majorityOf, Pauses } from "leasehold/common";
import { Buffers } from "../buffers.js";
import type { Holder } from "../names/nodes.js";
import type { Content } from "../names/types.js";
import { isLeaseholdError } from "../protocol/failures.js";
import { noBytes } from "../protocol/messages.js";
import type { NodeParts } from "../protocol/settings.js";
import { type Checksum, checksumOfTags, tagOfBlock, zerosTag } from "../protocol/uploads.js";

/** Blocks of one upload waiting for a majority. */
const blocksAtOnce = 8;
/** Blocks in flight to one node. A slower node is left out, and fetches the blocks later. */
const blocksToNodeMax = 24;
/** Up to this many bytes of a block are kept in the pieces in which they arrived. */
const fewBytesMax = 32 * 2 ** 10;
const pauseBaseMs = 20;
const pauseMsMax = 500;

/**
 * Writes an immutable content to the nodes on which it is placed. The content is durable when `seal` has
 * resolved, and nobody sees it before it has a name.
 */
export class ContentWriter {
  readonly id: string;
  readonly #parts: NodeParts;
  readonly #checksum: Checksum;
  readonly #pauses: Pauses;
  readonly #signal: AbortSignal | undefined;
  /** The nodes that should get the content. */
  #nodes: readonly string[] = [];
  /** Nodes that have received blocks of the content. */
  readonly #given = new Set<string>();
  readonly #tags: string[] = [];
  readonly #buffers = new Buffers();
  readonly #toNode = new Map<string, number>();
  readonly #underWay = new Set<Promise<void>>();
  #first: Uint8Array | undefined;
  #size = 0;
  #failure: unknown;
  #isEnded = false;

  constructor(parts: NodeParts, checksum: Checksum, id: string, signal: AbortSignal | undefined) {
    this.id = id;
    this.#parts = parts;
    this.#checksum = checksum;
    this.#signal = signal;
    this.#pauses = new Pauses(parts.world.timers);
  }

  /** Must be called before the first byte, and again whenever the content has been announced again. */
  place(nodes: readonly string[]): void {
    this.#nodes = nodes;
    for (const node of nodes) this.#given.add(node);
  }

  /**
   * Takes all bytes. The first block is held back until the second, so that a content of one block needs only
   * one request.
   */
  async write(bytes: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const block of blocksOf(bytes, this.#parts.settings.blockSize, this.#buffers)) {
      this.#signal?.throwIfAborted();
      if (this.#failure !== undefined) throw this.#failure;
      const index = this.#tags.length;
      const isZeros = block.every((byte) => byte === 0) && block.length === this.#parts.settings.blockSize;
      this.#tags.push(isZeros ? zerosTag : tagOfBlock(this.#checksum, block));
      this.#size += block.length;
      const sent = isZeros ? noBytes : block;
      if (index === 0) {
        this.#first = sent;
        continue;
      }
      if (index === 1) await this.#send(0, this.#first!);
      await this.#send(index, sent);
    }
    await Promise.all(this.#underWay);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Resolves when a majority of the content's nodes has all of it on disk. */
  async seal(): Promise<{ readonly content: Content; readonly holders: readonly Holder[] }> {
    const { blockSize } = this.#parts.settings;
    const checksum = checksumOfTags(this.#checksum, this.#tags);
    const content = { id: this.id, isLive: false, size: this.#size, blockSize, checksum };
    if (this.#tags.length === 0) return { content: { ...content, id: "" }, holders: [] };
    const blocks = this.#tags.length;
    const isSmall = blocks === 1;
    const tag = isSmall ? this.#tags[0]! : null;
    const ask = { content: this.id, blocks, checksum, tag, nodes: [...this.#given] };
    const body = isSmall ? this.#first! : noBytes;
    const { operationTimeoutMs: timeoutMs } = this.#parts.settings;
    const holders: Holder[] = [];
    let missing = new Map<string, number>();
    await this.#atMajority(
      () => holders.length >= majorityOf(this.#nodes.length),
      async (node, progressed) => {
        const { answer } = await this.#parts.peers.ask(node, "hold", ask, { body, timeoutMs });
        if (answer.missing === 0) {
          holders.push({ node, disk: answer.disk });
          return;
        }
        if (answer.missing < (missing.get(node) ?? Infinity)) progressed();
        missing = missing.set(node, answer.missing);
        throw new LeaseholdError("NO_QUORUM", `${node} lacks ${answer.missing} blocks`);
      },
    );
    return { content, holders };
  }

  /** Removes what nodes have of the content. Call it only if no change can have named the content. */
  discard(): void {
    this.end();
    for (const node of this.#given)
      this.#parts.peers
        .ask(node, "discard", { content: this.id }, { timeoutMs: this.#parts.settings.answerTimeoutMs })
        .catch(() => undefined);
  }

  end(): void {
    this.#isEnded = true;
    this.#pauses.end();
  }

  /** Waits until only a few blocks are in flight, then sends this one. */
  async #send(index: number, bytes: Uint8Array): Promise<void> {
    while (this.#underWay.size >= blocksAtOnce) await Promise.race(this.#underWay);
    if (this.#failure !== undefined) throw this.#failure;
    const ask = { content: this.id, index, tag: this.#tags[index]! };
    const acknowledged = new Set<string>();
    let asked = 0;
    const sending = this.#atMajority(
      () => acknowledged.size >= majorityOf(this.#nodes.length),
      async (node) => {
        const waiting = this.#toNode.get(node) ?? 0;
        if (waiting >= blocksToNodeMax) throw new LeaseholdError("OVERLOADED", `${node} is slow`);
        this.#toNode.set(node, waiting + 1);
        asked += 1;
        try {
          const { answerTimeoutMs: timeoutMs } = this.#parts.settings;
          await this.#parts.peers.ask(node, "piece", ask, { body: bytes, timeoutMs });
          acknowledged.add(node);
          // After a failure a socket may still hold a reference to the bytes.
          if (acknowledged.size === asked && acknowledged.size === this.#nodes.length)
            this.#buffers.give(bytes);
        } finally {
          this.#toNode.set(node, this.#toNode.get(node)! - 1);
        }
      },
    ).then(
      () => void this.#underWay.delete(sending),
      (error: unknown) => {
        this.#failure ??= error;
        this.#underWay.delete(sending);
      },
    );
    this.#underWay.add(sending);
  }

  /** Repeats the work at each node until enough have succeeded, as long as it makes progress in time. */
  #atMajority(
    isEnough: () => boolean,
    work: (node: string, progressed: () => void) => Promise<void>,
  ): Promise<void> {
    const { world, settings } = this.#parts;
    const nodes = this.#nodes;
    const nowMs = (): number => world.clock.monotonicMs();
    let untilMs = nowMs() + settings.operationTimeoutMs;
    const progressed = (): void => void (untilMs = nowMs() + settings.operationTimeoutMs);
    return new Promise((resolve, reject) => {
      const failures = new Map<string, unknown>();
      const tries = nodes.map(async (node) => {
        for (let failed = 0; ; failed += 1) {
          try {
            await work(node, progressed);
            if (isEnough()) resolve();
            return;
          } catch (error) {
            failures.set(node, error);
            if (isEnough()) return;
            if (isLeaseholdError(error, "STORE_FULL", "INVALID_PATH")) return;
            if (this.#isEnded || this.#signal?.aborted === true || nowMs() >= untilMs) return;
          }
          const pauseMs = backOffMs(world.random, failed, pauseBaseMs, pauseMsMax);
          await this.#pauses.pause(Math.min(pauseMs, Math.max(0, untilMs - nowMs())));
          if (isEnough()) return;
        }
      });
      void Promise.all(tries).then(() => reject(failureOf(failures, this.#signal)));
    });
  }
}

function failureOf(failures: ReadonlyMap<string, unknown>, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason;
  const told = [...failures].map(
    ([node, error]) => `${node}: ${error instanceof Error ? error.message : error}`,
  );
  const isFull = [...failures.values()].some((error) => isLeaseholdError(error, "STORE_FULL"));
  const code = isFull ? "STORE_FULL" : "NO_QUORUM";
  return new LeaseholdError(code, `no majority of nodes has taken a content: ${told.join("; ")}`);
}

/**
 * Regroups the bytes into blocks of one size, except for the last. Memory for a whole block is allocated only
 * when there are enough bytes, because most contents are far smaller.
 */
async function* blocksOf(
  bytes: AsyncIterable<Uint8Array>,
  size: number,
  buffers: Buffers,
): AsyncGenerator<Uint8Array> {
  const few: Uint8Array[] = [];
  let block: Uint8Array | undefined;
  let filled = 0;
  const add = (part: Uint8Array): void => {
    block!.set(part, filled);
    filled += part.length;
  };
  for await (const chunk of bytes) {
    for (let from = 0; from < chunk.length;) {
      const part = chunk.subarray(from, from + size - filled);
      from += part.length;
      if (block === undefined && filled + part.length < Math.min(size, fewBytesMax)) {
        few.push(part);
        filled += part.length;
        continue;
      }
      if (block === undefined) {
        block = buffers.take(size);
        filled = 0;
        for (const each of few.splice(0)) add(each);
      }
      add(part);
      if (filled < size) continue;
      yield block;
      block = undefined;
      filled = 0;
    }
  }
  if (block !== undefined) yield block.slice(0, filled);
  else if (filled > 0) yield joined(few, filled);
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
