import type { Protocol } from "../effects.js";
import { lookAtClocks } from "../effects.js";
import type { FarmView } from "../lease-protocol.js";
import { decodeEnvelope, encodeEnvelope } from "../record/envelope.js";
import type { StoreAnswer } from "../store.js";
import { LastingFarm } from "./lasting-farm.js";
import { update } from "./update.js";
import type { Step } from "./update.js";

/** Ranks are totally ordered, and no two processes or objects ever choose the same rank. */
export interface Rank {
  readonly round: bigint;
  readonly writer: string;
}

export function compareRanks(a: Rank, b: Rank): number {
  if (a.round !== b.round) return a.round < b.round ? -1 : 1;
  return a.writer < b.writer ? -1 : a.writer > b.writer ? 1 : 0;
}

/** Lower than any rank that processes choose. */
const lowest: Rank = { round: 0n, writer: "" };

/** The content of one store's cell. */
interface RankedCell {
  /** The greatest rank that read or wrote here. */
  readonly read: Rank;
  readonly write: Rank;
  /** Absent while nothing was written. */
  readonly value?: string;
}

export type RankedRead =
  | { readonly kind: "read"; readonly value: string | undefined; readonly rank: Rank }
  /** A greater rank was used here, or no majority answered: choose a greater rank. */
  | { readonly kind: "aborted"; readonly greatest: Rank };

export interface RankedRegisterOptions {
  readonly farm: FarmView;
  /** The name of the register in every store. */
  readonly name: string;
  /** Timeout of an operation, ms. */
  readonly timeoutMs: number;
}

/**
 * The ranked register (the basis of section 9), on a majority of stores that compare and set. A write commits
 * only if no operation of a greater rank preceded it at any store of its majority. A read returns the value
 * with the greatest rank that was committed before it, or one that may still be committed.
 */
export class RankedRegister {
  readonly #options: RankedRegisterOptions;
  readonly #farm: LastingFarm;
  readonly #contents: (Uint8Array | undefined)[] = [];

  constructor(options: RankedRegisterOptions) {
    this.#options = options;
    this.#farm = new LastingFarm(options.farm);
  }

  /**
   * rr-read(r): from now on smaller ranks cannot write. Returns the value of the greatest rank that has
   * written.
   */
  *read(rank: Rank): Protocol<RankedRead> {
    yield* this.#look();
    const seen = new Map<number, RankedCell>();
    const kind = yield* this.#bring((store, cell) => {
      if (compareRanks(cell.read, rank) > 0) return "refuse";
      seen.set(store, cell);
      return { ...cell, read: rank };
    });
    if (kind !== "done") return { kind: "aborted", greatest: this.#greatest() };
    let latest: RankedCell = { read: lowest, write: lowest };
    for (const cell of seen.values()) if (compareRanks(cell.write, latest.write) >= 0) latest = cell;
    return { kind: "read", value: latest.value, rank: latest.write };
  }

  /** rr-write(⟨r, v⟩). After an abort the value may still be in some stores, and a later read may find it. */
  *write(rank: Rank, value: string): Protocol<"commit" | "abort"> {
    const kind = yield* this.#bring((_store, cell) => {
      if (compareRanks(cell.read, rank) > 0 || compareRanks(cell.write, rank) > 0) return "refuse";
      return { read: rank, write: rank, value };
    });
    return kind === "done" ? "commit" : "abort";
  }

  /**
   * The value of any store that answers, whatever its rank: for registers that are only ever written one
   * value.
   */
  *peek(): Protocol<string | undefined> {
    yield* this.#look();
    for (const content of this.#contents) {
      const value = decode(content)?.value;
      if (value !== undefined) return value;
    }
    return undefined;
  }

  /** Reads the stores' contents: a wrong assumption about one costs a round. */
  *#look(): Protocol<void> {
    const { name, timeoutMs } = this.#options;
    const farm = this.#farm;
    farm.check();
    const requests = Array.from({ length: farm.size }, () => ({ op: "read", register: name }) as const);
    const counts = (store: number, answer: StoreAnswer | undefined) =>
      answer?.kind === "cells" && answer.id === farm.idOf(store);
    const enough = (answers: readonly (StoreAnswer | undefined)[]) =>
      answers.filter((answer, store) => counts(store, answer)).length >= farm.majority;
    const { answers } = yield { kind: "ask", requests, enough, timeoutMs };
    for (const [store, answer] of answers.entries())
      if (answer?.kind === "cells" && counts(store, answer)) this.#contents[store] = answer.cells[0];
  }

  *#bring(
    change: (store: number, cell: RankedCell) => RankedCell | "refuse",
  ): Protocol<"done" | "refused" | "unanswered"> {
    const { name, timeoutMs } = this.#options;
    this.#farm.check();
    const begun = (yield lookAtClocks).now;
    const step = (store: number, content: Uint8Array | undefined): Step => {
      const cell = decode(content);
      const next = cell === undefined ? "refuse" : change(store, cell);
      if (next === "refuse") return { kind: "refuse" };
      const bytes = encode(next);
      return same(cell, next) ? { kind: "done" } : { kind: "write", next: bytes };
    };
    const wanted = { register: name, contents: this.#contents, step, begun, timeoutMs };
    return (yield* update(this.#farm, wanted)).kind;
  }

  #greatest(): Rank {
    let greatest = lowest;
    for (const content of this.#contents) {
      const read = decode(content)?.read;
      if (read !== undefined && compareRanks(read, greatest) > 0) greatest = read;
    }
    return greatest;
  }
}

const format = "leasehold-ranked/1";

type RankText = readonly [round: string, writer: string];

function encode({ read, write, value }: RankedCell): Uint8Array {
  const text = ({ round, writer }: Rank): RankText => [round.toString(), writer];
  return encodeEnvelope(format, JSON.stringify({ read: text(read), write: text(write), value }));
}

/** `undefined` for foreign or damaged content, which is never overwritten. */
function decode(content: Uint8Array | undefined): RankedCell | undefined {
  if (content === undefined) return { read: lowest, write: lowest };
  try {
    const { read, write, value } = decodeEnvelope(format, content) as Record<keyof RankedCell, unknown>;
    const ranks = { read: rankOf(read), write: rankOf(write) };
    if (typeof value === "string") return { ...ranks, value };
    return value === undefined ? ranks : undefined;
  } catch {
    return undefined;
  }
}

function rankOf(value: unknown): Rank {
  const [round, writer] = value as RankText;
  if (typeof round !== "string" || typeof writer !== "string") throw new TypeError("not a rank");
  return { round: BigInt(round), writer };
}

function same(a: RankedCell | undefined, b: RankedCell): boolean {
  return (
    a !== undefined &&
    compareRanks(a.read, b.read) === 0 &&
    compareRanks(a.write, b.write) === 0 &&
    a.value === b.value
  );
}
