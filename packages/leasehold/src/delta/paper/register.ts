import { LeaseholdError } from "../../lease/errors.js";
import type { BothClocks } from "../../common/both-clocks.js";
import type { Protocol } from "../effects.js";
import type { FarmView, Floor } from "../lease-protocol.js";
import { greatestBigint } from "../record/fields.js";
import type { StoreAnswer, StoreRequest } from "../store.js";
import { LastingFarm } from "./lasting-farm.js";
import { compareStamps, later, sameStamp } from "../record/stamp.js";
import type { Stamp } from "../record/stamp.js";
import { update } from "./update.js";
import type { Step, Updated } from "./update.js";

/** The encoding of values in a store. `decode` throws on anything that it did not write. */
export interface Codec<Value> {
  encode(value: Value): Uint8Array;
  decode(bytes: Uint8Array): Value;
}

export interface RegisterOptions<Value> {
  readonly farm: FarmView;
  /** The name of the register in every store. */
  readonly name: string;
  readonly codec: Codec<Value>;
  /** δ: the timeout of an operation, ms. Requests in flight may still take effect after it. */
  readonly delayMs: number;
  /**
   * Its content expires by itself, so that a store that has come back empty may count again. Default: false,
   * for values, which don't expire.
   */
  readonly runsOut?: boolean;
}

export type ReadResult<Value> = ReadSeen<Value> | Unanswered;

/** The result of a read at a majority. */
export interface ReadSeen<Value> {
  readonly kind: "read";
  /** `undefined`: never written. */
  readonly value: Value | undefined;
  /**
   * By store index: all values that the store returned, none if never written. `undefined`: it did not
   * answer.
   */
  readonly stores: readonly (readonly Value[] | undefined)[];
  /**
   * An upper bound of the numbers that any store may have forgotten. Its epoch counts only if a store showed
   * an empty register.
   */
  readonly floor: Floor;
  readonly begun: BothClocks;
  readonly ended: BothClocks;
  readonly cancelled: boolean;
}

/** No majority answered within δ. */
export interface Unanswered {
  readonly kind: "unanswered";
  readonly error: LeaseholdError;
  readonly ended: BothClocks;
  readonly cancelled: boolean;
}

/** An answer that does not count, with its error if known. */
interface Failed {
  readonly failed: unknown;
}

function valuesOf<Value>(reading: readonly Value[] | Failed): readonly Value[] | undefined {
  return "failed" in reading ? undefined : reading;
}

/**
 * Whether `next` may replace this content of an atomic store. A cell that was never written may always be
 * replaced. If it returns a value, that is written instead of `next`, here and wherever `next` has not been
 * written yet.
 */
export type MayReplace<Value> = (content: Value, next: Value) => boolean | Value;

/**
 * The regular multi-writer register over n > 2t stores, t of which may never answer (section 3). A read
 * returns the last value written before it, or one that is being written. On atomic stores a single cell
 * keeps the greater timestamp. On slotted stores every writer has a slot, and a read reads all of them.
 */
export class RegularRegister<Value extends Stamp> {
  readonly delayMs: number;
  readonly #farm: FarmView;
  readonly #name: string;
  readonly #codec: Codec<Value>;
  /** The last known content of each atomic store: the `expected` of the next `replace`. */
  readonly #contents: (Uint8Array | undefined)[] = [];
  /**
   * The values of each slotted store's last read, and the mark with which the store can report that nothing
   * was announced since.
   */
  readonly #shown: ({ readonly mark: string; readonly values: readonly Value[] } | undefined)[] = [];
  /** Stores with announcements not marked as read, and the number of each store's last announcement. */
  readonly #news = new Map<number, number>();
  #lastNews = 0;
  /** The number of writes by this process. */
  #sent = 0;
  /** The stores that the last read counts. */
  #counted: readonly number[] = [];
  /**
   * The greatest value that a read returned. Without it, a value whose write was left incomplete could appear
   * and disappear forever.
   */
  #greatest: Value | undefined;

  constructor(options: RegisterOptions<Value>) {
    this.#farm = options.runsOut === true ? options.farm : new LastingFarm(options.farm);
    this.#name = options.name;
    this.#codec = options.codec;
    this.delayMs = options.delayMs;
  }

  /** True when every store can compare and set. */
  get isAtomic(): boolean {
    for (let store = 0; store < this.#farm.size; store += 1)
      if (this.#farm.kindOf(store) !== "atomic") return false;
    return true;
  }

  /**
   * Reads all stores, waits for a majority, and returns the greatest timestamp.
   *
   * @throws LeaseholdError `STORE_FORGOTTEN`
   */
  read(begun: BothClocks): Protocol<ReadResult<Value>> {
    return this.#read(begun, false, () => true);
  }

  /**
   * The same for a holder. If a store reports that nothing was announced, its earlier values count, together
   * with this process's own later write: renewals and releases of others don't concern a holder. A
   * contender's record is announced before its pause of 2δ begins. So a read that misses it ended before that
   * pause, and so did the write that followed an earlier read. Either the contender finds that write when it
   * reads again, or the holder finds the announcement. See `docs/internals/storage-leases.md`.
   *
   * Until `settles` returns true for the stores' values, the read continues after a majority has answered.
   */
  readByHolder(
    begun: BothClocks,
    settles: (stores: ReadSeen<Value>["stores"]) => boolean,
  ): Protocol<ReadResult<Value>> {
    return this.#read(begun, true, settles);
  }

  /** False if no store that the last read counts had announcements since {@link markRead}. */
  get hasNews(): boolean {
    return this.#counted.some((store) => this.#news.has(store));
  }

  /** The number of the last announcement, for {@link markRead}. */
  get lastNews(): number {
    return this.#lastNews;
  }

  /**
   * Marks the announcements of these stores up to a number as read. A late answer may arrive while the
   * resource's other registers are read, and announce a write that this reading has missed.
   */
  markRead(stores: readonly number[], lastNews: number): void {
    for (const store of stores) if ((this.#news.get(store) ?? 0) <= lastNews) this.#news.delete(store);
  }

  *#read(
    begun: BothClocks,
    byHolder: boolean,
    settles: (stores: ReadSeen<Value>["stores"]) => boolean,
  ): Protocol<ReadResult<Value>> {
    if (this.#farm instanceof LastingFarm) this.#farm.check();
    const { size, majority } = this.#farm;
    const requests = Array.from({ length: size }, (_, store) => this.#readRequest(store, byHolder));
    const readings: (readonly Value[] | Failed)[] = [];
    const take = (answers: readonly (StoreAnswer | undefined)[]) => {
      for (const [store, answer] of answers.entries())
        if (answer !== undefined) readings[store] ??= this.#readingOf(store, answer);
      return readings.filter((reading) => "failed" in reading).length;
    };
    const enough = (answers: readonly (StoreAnswer | undefined)[]) => {
      const failed = take(answers);
      // Counts valid answers, not all answers: a damaged store must not block the others.
      if (size - failed < majority) return true;
      return count(readings) - failed >= majority && settles(readings.map(valuesOf));
    };
    const sentBefore = this.#sent;
    // A late answer does not count, but a later read need not fetch it again, unless this process has written
    // since: the answer lacks that write.
    const late = (store: number, answer: StoreAnswer) => {
      if (this.#farm.kindOf(store) === "slotted" && this.#sent === sentBefore) this.#readingOf(store, answer);
    };
    const { answers, now, cancelled } = yield {
      kind: "ask",
      requests,
      enough,
      timeoutMs: this.delayMs,
      late,
    };
    take(answers);
    let greatest: Value | undefined;
    const stores: (readonly Value[] | undefined)[] = Array.from({ length: size });
    const failures: unknown[] = [];
    for (const [store, reading] of readings.entries()) {
      if (reading === undefined) continue;
      if ("failed" in reading) {
        failures.push(reading.failed);
        continue;
      }
      greatest = reading.reduce<Value | undefined>(later, greatest);
      stores[store] = reading;
    }
    if (count(stores) < majority) return this.#unanswered(failures, now, cancelled);
    this.#counted = stores.flatMap((reading, store) => (reading === undefined ? [] : [store]));
    this.#greatest = later(this.#greatest, greatest);
    const floor = this.#floorOf(stores);
    return { kind: "read", value: this.#greatest, stores, floor, begun, ended: now, cancelled };
  }

  /**
   * Both phases of a write: reads a majority for the greatest number, and sends the value that `make` returns
   * for the next number. A store keeps the greater of its value and the new one.
   */
  *write(make: (number: bigint, seen: ReadSeen<Value>) => Value, begun: BothClocks): Protocol<Updated> {
    const seen = yield* this.read(begun);
    if (seen.kind === "unanswered") return { kind: "unanswered", failures: [], ended: seen.ended };
    const value = make(numberAfter(seen), seen);
    return yield* this.#send(value, (content) => compareStamps(content, value) < 0, "done", begun);
  }

  /**
   * The second phase alone, for a process that has just read. An atomic store accepts the value only over a
   * content that `mayReplace` allows. A store with a greater value than is allowed refuses, unless it already
   * has `value`.
   */
  send(value: Value, mayReplace: MayReplace<Value>, begun: BothClocks): Protocol<Updated> {
    return this.#send(value, mayReplace, "refuse", begun, { quiet: false });
  }

  /** The same for a renewal, which need not be announced to holders. */
  sendQuietly(value: Value, mayReplace: MayReplace<Value>, begun: BothClocks): Protocol<Updated> {
    return this.#send(value, mayReplace, "refuse", begun, { quiet: true });
  }

  /** Writes wherever `mayReplace` allows it, whether or not that makes a majority. */
  sendAnywhere(value: Value, mayReplace: MayReplace<Value>, begun: BothClocks): Protocol<Updated> {
    return this.#send(value, mayReplace, "refuse", begun, { bestEffort: true });
  }

  *#send(
    value: Value,
    mayReplace: MayReplace<Value>,
    otherwise: "done" | "refuse",
    begun: BothClocks,
    how: { readonly quiet?: boolean; readonly bestEffort?: boolean } = {},
  ): Protocol<Updated> {
    let wanted = value;
    this.#sent += 1;
    const write = (): Step => ({ kind: "write", next: this.#codec.encode(wanted) });
    const step = (store: number, content: Uint8Array | undefined): Step => {
      if (this.#farm.kindOf(store) === "slotted" || content === undefined) return write();
      const stands = this.#decode(content);
      if (stands === undefined) return { kind: "refuse" };
      if (sameStamp(stands, wanted)) return { kind: "done" };
      const verdict = mayReplace(stands, wanted);
      if (verdict === false) return { kind: otherwise };
      if (verdict !== true) wanted = verdict;
      return write();
    };
    const { delayMs: timeoutMs } = this;
    const contents = this.#contents;
    const change = { register: this.#name, contents, step, begun, timeoutMs, ...how };
    for (const store of contents.keys()) if (!this.#isKnown(store)) contents[store] = undefined;
    const updated = yield* update(this.#farm, change);
    for (const store of this.#shown.keys()) if (contents[store] !== undefined) this.#wroteTo(store, wanted);
    return updated;
  }

  /**
   * Whether the content of an atomic store is known. Content that the last read did not count may have been
   * lost with its store, and must not be taken for a greater value that is already there.
   */
  #isKnown(store: number): boolean {
    return this.#farm.kindOf(store) === "atomic" && this.#counted.includes(store);
  }

  /**
   * The number counts in every read, whichever stores it asked. If only readers of an empty register rose
   * above it, a contender that crashed half-way would look like the successor of a holder that read other
   * stores.
   */
  #floorOf(stores: readonly (readonly Value[] | undefined)[]): Floor {
    const floors = stores.map((_, store) => this.#farm.floorOf(store));
    const emptied = floors.filter((_, store) => stores[store]?.length === 0);
    return {
      number: greatestBigint(floors.map(({ number }) => number)),
      epoch: greatestBigint(emptied.map(({ epoch }) => epoch)),
    };
  }

  #readRequest(store: number, byHolder: boolean): StoreRequest {
    const quietSince = byHolder ? this.#shown[store]?.mark : undefined;
    return { op: "read", register: this.#name, ...(quietSince !== undefined && { quietSince }) };
  }

  /** A slotted store shows the last write of this process, which has its own slot there. */
  #wroteTo(store: number, value: Value): void {
    const shown = this.#shown[store];
    if (shown === undefined) return;
    const others = shown.values.filter(({ writer }) => writer !== value.writer);
    this.#shown[store] = { ...shown, values: [...others, value] };
  }

  #readingOf(store: number, answer: StoreAnswer): readonly Value[] | Failed {
    const shown = this.#shown[store];
    if (answer.kind === "quiet" && answer.id === this.#farm.idOf(store) && shown !== undefined)
      return shown.values;
    this.#lastNews += 1;
    this.#news.set(store, this.#lastNews);
    if (answer.kind !== "cells" || answer.id !== this.#farm.idOf(store))
      return { failed: answer.kind === "failed" ? answer.error : undefined };
    if (this.#farm.kindOf(store) === "atomic") this.#contents[store] = answer.cells[0];
    const { mark } = answer;
    try {
      const values = answer.cells.map((cell) => this.#codec.decode(cell));
      this.#shown[store] = mark === undefined ? undefined : { mark, values };
      return values;
    } catch (failed) {
      // Foreign or damaged: never taken for an empty cell, so the store counts as silent.
      return { failed };
    }
  }

  #decode(content: Uint8Array): Value | undefined {
    try {
      return this.#codec.decode(content);
    } catch {
      return undefined;
    }
  }

  #unanswered(failures: readonly unknown[], ended: BothClocks, cancelled: boolean): Unanswered {
    const { size, majority } = this.#farm;
    const first = failures.find((failure) => failure instanceof LeaseholdError);
    const message = `no ${majority} of ${size} stores answered within ${this.delayMs} ms`;
    const error =
      first === undefined
        ? new LeaseholdError("NO_QUORUM", message)
        : new LeaseholdError(first.code, `${message}: ${first.message}`, { cause: first });
    return { kind: "unanswered", error, ended, cancelled };
  }
}

function count(readings: readonly unknown[]): number {
  return readings.filter((reading) => reading !== undefined).length;
}

/** One more than the greatest number that a read has returned. */
export function numberAfter(seen: { readonly value: Stamp | undefined; readonly floor: Floor }): bigint {
  const number = seen.value?.number ?? 0n;
  return (number > seen.floor.number ? number : seen.floor.number) + 1n;
}
