import { backOffMs } from "../../common/back-off.js";
import { LeaseholdError } from "../../lease/errors.js";
import { type Cell, cellOf, type CellOrError, isCell } from "../cell.js";
import { encodeRecord } from "../record/codec.js";
import { adopted, whyNotAdopted } from "./adoption.js";
import { askHolder } from "./conditional-ask.js";
import { conditionalPromise } from "./conditional-promise.js";
import { ConditionalTenure } from "./conditional-tenure.js";
import type { BothClocks } from "../../common/both-clocks.js";
import { lookAtClocks, type Protocol, type Resumption } from "../effects.js";
import { noMajority, tooFewEpochs } from "../failures.js";
import type {
  AskResult,
  AttemptResult,
  AttemptWish,
  LeaseProtocol,
  Listing,
  ProtocolEnvironment,
  HolderView,
} from "../lease-protocol.js";
import { stretched } from "../../common/clock-rates.js";
import { listFarm, lookAtFarm, readAll } from "../quorum-read.js";
import { Observations } from "../observations.js";
import type { Asked, DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";
import type { StoreAnswer, StoreRequest } from "../store.js";

/**
 * After this many consecutive split votes an attempt reports the resource as held; a waiter retries later.
 */
const splitsMax = 12;

/** Repetitions of a write that found its own newer record; a store cannot cause more. */
const rewritesMax = 3;

/** The smallest upper bound of the random pause after a split vote, ms. */
const backoffMsMin = 2;

/** Resources remembered after this process released them: about 10 megabytes. Others are read again. */
const leftMax = 10_000;

/** The stores, grouped by whether their cell may be replaced. */
interface Board {
  /** Stores whose cell may be replaced. */
  readonly open: number[];
  /** Stores with a live lease of another participant, and for how long it lasts, ms. */
  readonly blocked: { readonly record: DeltaRecord; readonly untilMs: number }[];
}

/** The result of a write. */
interface Reach {
  readonly written: Set<number>;
  readonly step: Resumption;
}

/** The shortest lease, in δ: time for a renewal that takes its whole δ, and for another one if that fails. */
export const conditionalLeaseDelaysMin = 3;

/**
 * The Δ-lease where every store can compare and set. It needs no bound on the duration of an operation. A
 * lease is acquired when a majority of cells was replaced, each exactly as it had been observed, and a held
 * cell is replaced only when its observer has seen it unchanged for Δ on its own steady clock. Two majorities
 * have a store in common. At that store a successor's replacement came either after the holder's last renewal
 * or before it. In the first case it was based on that renewal, and waited for its Δ. In the second case the
 * renewal found unexpected content in the cell, and failed.
 */
export class ConditionalLease implements LeaseProtocol<ConditionalTenure> {
  readonly promise: LeaseProtocol["promise"];
  readonly takeoverMsMax: number;
  readonly leaseDelaysMin = conditionalLeaseDelaysMin;
  readonly observations: Observations;
  readonly #environment: ProtocolEnvironment;
  /** By resource: the assumed content of each cell after this process released it. */
  readonly #left = new Map<string, readonly (Cell | undefined)[]>();
  #nonce = 0;

  constructor(environment: ProtocolEnvironment) {
    const { leaseMsMax, pollMs, delayMs, clockRateError } = environment.settings;
    this.#environment = environment;
    this.observations = new Observations(clockRateError);
    this.takeoverMsMax = stretched(leaseMsMax, clockRateError) + pollMs + 3 * delayMs;
    this.promise = conditionalPromise(environment);
  }

  *attempt(wish: AttemptWish): Protocol<AttemptResult<ConditionalTenure>> {
    const { farm, settings, random } = this.#environment;
    let step = yield lookAtClocks;
    const again = yield* this.#takeAgain(wish, step.now);
    if (again !== undefined) return { kind: "granted", tenure: again };
    step = yield lookAtClocks;
    for (let splits = 0; ; splits += 1) {
      const { now: before } = step;
      const cells: (CellOrError | undefined)[] = [];
      const isPlain = () => {
        const seen = this.#board(wish, cells, before);
        return seen.open.length >= farm.majority || this.#isHeld(seen);
      };
      step = yield* readAll(farm, wish.resource, cells, this.#timeoutMs(wish, before), isPlain);
      this.#observe(wish.resource, cells, step.now);
      if (step.cancelled) return failed("the caller cancelled the attempt");
      const board = this.#board(wish, cells, step.now);
      const { open, blocked } = board;
      const error = whyNotAdopted(wish, cells, farm.majority);
      if (error !== undefined) return { kind: "failed", error };
      if (open.length >= farm.majority) {
        if (!farm.mayTake(this.#greatest(cells).epoch + 1n)) return { kind: "failed", error: tooFewEpochs };
        const tenure = yield* this.#take(wish, cells, open, step.now);
        if (tenure !== undefined) return { kind: "granted", tenure };
      } else if (open.length + blocked.length < farm.majority) {
        return { kind: "failed", error: this.#noMajority(cells) };
      } else if (this.#isHeld(board) || open.length + blocked.length < farm.size || splits >= splitsMax) {
        // With a silent store, split votes cannot be distinguished from a holder's votes.
        return this.#held(open.length, blocked);
      }
      const roundMs = step.now.monotonicMs - before.monotonicMs;
      const delayMs = backOffMs(random, splits, Math.max(backoffMsMin, roundMs), settings.delayMs);
      step = yield { kind: "delay", delayMs };
      if (step.cancelled) return failed("the caller cancelled the attempt");
      if (step.now.monotonicMs >= wish.deadlineMs) return failed("others kept competing for the resource");
    }
  }

  *renew(tenure: ConditionalTenure, leaseMs: number): Protocol<boolean> {
    const { now } = yield lookAtClocks;
    if (tenure.remainingMs(now) === 0 || tenure.isBroken || tenure.isDetached) return false;
    tenure.leaseMsMax = Math.max(tenure.leaseMsMax, leaseMs);
    tenure.number += 1n;
    const { data, leaseMsMax } = tenure;
    const record = this.#record(tenure.resource, tenure.token, tenure.number, "held", leaseMsMax, { data });
    const { written, step } = yield* this.#write(tenure, record, now, true);
    const { majority } = this.#environment.farm;
    if (this.#successors(tenure) >= majority) tenure.lost ??= "expired";
    if (tenure.remainingMs(step.now) === 0 || tenure.isBroken || written.size < majority) return false;
    const gainedMs = now.monotonicMs + leaseMs - (tenure.hold.begun.monotonicMs + tenure.hold.leaseMs);
    if (gainedMs <= 0) return false;
    tenure.hold = { begun: now, leaseMs };
    return tenure.remainingMs(step.now) > 0;
  }

  *release(tenure: ConditionalTenure): Protocol<void> {
    const { now } = yield lookAtClocks;
    tenure.lost ??= "released";
    tenure.number += 1n;
    const record = this.#record(tenure.resource, tenure.token, tenure.number, "free", tenure.leaseMsMax);
    yield* this.#write(tenure, record, now, false);
    this.#left.delete(tenure.resource);
    this.#left.set(tenure.resource, tenure.cells);
    if (this.#left.size > leftMax) this.#left.delete(this.#left.keys().next().value!);
  }

  *detach(tenure: ConditionalTenure, pass: string): Protocol<boolean> {
    const { now } = yield lookAtClocks;
    tenure.isDetached = true;
    if (tenure.remainingMs(now) === 0 || tenure.isBroken) return false;
    tenure.number += 1n;
    const { data, leaseMsMax } = tenure;
    const also = { data, detached: pass };
    const record = this.#record(tenure.resource, tenure.token, tenure.number, "held", leaseMsMax, also);
    const { written } = yield* this.#write(tenure, record, now, false);
    return written.size >= this.#environment.farm.majority && !tenure.isBroken;
  }

  *look(resource: string, timeoutMs: number): Protocol<HolderView> {
    return yield* lookAtFarm(this.#environment, this.observations, resource, timeoutMs);
  }

  *list(prefix: string, timeoutMs: number): Protocol<Listing> {
    return yield* listFarm(this.#environment, this.observations, prefix, timeoutMs);
  }

  *ask(resource: string, asked: Asked, timeoutMs: number): Protocol<AskResult> {
    return yield* askHolder(this.#environment, this.observations, resource, asked, timeoutMs);
  }

  /**
   * Acquires a resource without a read if this process was the last to release it. It replaces the records
   * that it left: the stores compare, so a wrong assumption costs a round, never more. Skipped when there is
   * no time for another round, and for a detached lease, which has to be read.
   */
  *#takeAgain(wish: AttemptWish, now: BothClocks): Protocol<ConditionalTenure | undefined> {
    const { farm, settings } = this.#environment;
    const cells = this.#left.get(wish.resource);
    this.#left.delete(wish.resource);
    if (cells === undefined || wish.adopts !== undefined) return undefined;
    if (wish.deadlineMs - now.monotonicMs < 2 * settings.delayMs) return undefined;
    const { open } = this.#board(wish, cells, now);
    if (open.length < farm.majority || !farm.mayTake(this.#greatest(cells).epoch + 1n)) return undefined;
    return yield* this.#take(wish, cells, open, now);
  }

  /** Replaces the open cells. Cells that could not be read are tried as if they had never been written. */
  *#take(
    wish: AttemptWish,
    cells: readonly (CellOrError | undefined)[],
    open: readonly number[],
    begun: BothClocks,
  ): Protocol<ConditionalTenure | undefined> {
    const { farm } = this.#environment;
    const { resource, leaseMs, data } = wish;
    const { epoch, number } = this.#greatest(cells);
    const record = this.#record(resource, epoch + 1n, number + 1n, "held", leaseMs, { data });
    const beliefs = cells.map((cell) => (isCell(cell) ? cell : undefined));
    const tenure = new ConditionalTenure(resource, record.epoch, { begun, leaseMs }, record.number, beliefs);
    tenure.data = data;
    const targets = Array.from({ length: farm.size }, (_, store) => store).filter(
      (store) => open.includes(store) || cells[store] === undefined,
    );
    const reach = yield* this.#replace(tenure, record, targets, [], new Set());
    if (reach.written.size >= farm.majority && tenure.remainingMs(reach.step.now) > 0) return tenure;
    yield* this.#withdraw(tenure, record, targets, reach, wish.adopts?.pass);
    return undefined;
  }

  /**
   * Writes *free* where the failed attempt's record is or may be. After a failed adoption it restores
   * *detached*, because nobody else may have the detached lease before its end. Best effort: a record that it
   * misses expires.
   */
  *#withdraw(
    tenure: ConditionalTenure,
    record: DeltaRecord,
    targets: number[],
    reach: Reach,
    detached: string | undefined,
  ): Protocol<void> {
    tenure.lost ??= "released";
    const cell: Cell = { content: encodeRecord(record), record };
    const mine = targets.filter(
      (store) => reach.written.has(store) || reach.step.answers[store] === undefined,
    );
    if (mine.length === 0) return;
    for (const store of mine) tenure.cells[store] = cell;
    const state = detached === undefined ? "free" : "held";
    const { resource, epoch, leaseMs } = record;
    const left = this.#record(resource, epoch, record.number + 1n, state, leaseMs, { detached });
    yield* this.#replace(tenure, left, mine, [], new Set());
  }

  /**
   * Writes a holder's record over its own cells. With `heals` it also writes over cells that a contender
   * might replace, so that a store that was silent or has lost a vote counts again. Cells that it must not
   * overwrite are read.
   */
  *#write(tenure: ConditionalTenure, record: DeltaRecord, now: BothClocks, heals: boolean): Protocol<Reach> {
    const { farm } = this.#environment;
    const written = new Set<number>();
    let todo = Array.from({ length: farm.size }, (_, store) => store);
    let step: Resumption = { now, cancelled: false, answers: [] };
    for (let rewrites = 0; rewrites < rewritesMax; rewrites += 1) {
      const mayReplace = (store: number) => {
        const cell = tenure.cells[store];
        if (cell === undefined) return heals;
        return (
          this.#isMine(cell, tenure) ||
          (heals && this.#untilOpenMs(cell, tenure.resource, store, step.now) === 0)
        );
      };
      const targets = todo.filter(mayReplace);
      const reads = todo.filter((store) => !targets.includes(store));
      ({ step } = yield* this.#replace(tenure, record, targets, rewrites === 0 ? reads : [], written));
      if (tenure.isBroken && heals) break;
      if (written.size >= farm.majority && heals) break;
      // Only stores that answered are retried: their present content is known.
      todo = todo.filter(
        (store) => !written.has(store) && step.answers[store] !== undefined && mayReplace(store),
      );
      if (todo.length === 0) break;
    }
    return { written, step };
  }

  /** One round of writes. Keeps the tenure's known cells up to date, even from late answers. */
  *#replace(
    tenure: ConditionalTenure,
    record: DeltaRecord,
    targets: readonly number[],
    reads: readonly number[],
    written: Set<number>,
  ): Protocol<Reach> {
    const { farm, settings } = this.#environment;
    const { resource, cells } = tenure;
    const next = encodeRecord(record);
    const register = leaseRegister(resource);
    const requests: (StoreRequest | undefined)[] = Array.from({ length: farm.size }, () => undefined);
    for (const store of reads) requests[store] = { op: "read", register };
    for (const store of targets)
      requests[store] = {
        op: "replace",
        register,
        id: farm.idOf(store),
        expected: cells[store]?.content,
        next,
      };
    const before = written.size;
    const mine: Cell = { content: next, record };
    const learn = (store: number, answer: StoreAnswer, at: BothClocks) => {
      if (answer.kind === "written") cells[store] = mine;
      else this.#learn(tenure, store, cellOf(answer, resource, farm.nameOf(store)), at);
    };
    const enough = (answers: readonly (StoreAnswer | undefined)[]) => {
      let [wins, open] = [before, 0];
      for (const store of targets)
        if (answers[store] === undefined) open += 1;
        else if (answers[store].kind === "written") wins += 1;
      // Whether a majority can still be reached. Freeing and detaching continue without one, because each
      // cell counts.
      const hopes = record.state === "free" || record.detached !== undefined || wins + open >= farm.majority;
      return wins >= farm.majority || !hopes;
    };
    const step = yield {
      kind: "ask",
      requests,
      timeoutMs: settings.delayMs,
      enough,
      late: learn,
    };
    step.answers.forEach((answer, store) => {
      if (answer === undefined) return;
      learn(store, answer, step.now);
      if (answer.kind === "written" && targets.includes(store)) written.add(store);
    });
    return { written, step };
  }

  #learn(tenure: ConditionalTenure, store: number, cell: CellOrError | undefined, now: BothClocks): void {
    if (!isCell(cell)) return;
    tenure.cells[store] = cell;
    const { record } = cell;
    if (record === undefined) return;
    if (record.writer !== this.#environment.writer) {
      this.observations.see(tenure.resource, store, record, now.monotonicMs);
    } else if (record.asked !== undefined && record.epoch === tenure.token) {
      tenure.asked = record.asked.broken ? record.asked : (tenure.asked ?? record.asked);
    }
  }

  #observe(resource: string, cells: readonly (CellOrError | undefined)[], now: BothClocks): void {
    cells.forEach((cell, store) => {
      if (isCell(cell) && cell.record !== undefined)
        this.observations.see(resource, store, cell.record, now.monotonicMs);
    });
  }

  #board(wish: AttemptWish, cells: readonly (CellOrError | undefined)[], now: BothClocks): Board {
    const board: Board = { open: [], blocked: [] };
    const isAdopted = adopted(wish, cells);
    cells.forEach((cell, store) => {
      if (!isCell(cell)) return;
      const untilMs = isAdopted(cell.record) ? 0 : this.#untilOpenMs(cell, wish.resource, store, now);
      if (untilMs === 0) board.open.push(store);
      else board.blocked.push({ record: cell.record!, untilMs });
    });
    return board;
  }

  /** Milliseconds until a contender may replace the cell; 0 when it may now. */
  #untilOpenMs({ record }: Cell, resource: string, store: number, now: BothClocks): number {
    if (record === undefined || record.state === "free") return 0;
    // This process wrote the record in an attempt or a tenure that is over, so it knows that it does not
    // hold. If that lease was broken or detached, others come first.
    const { writer, asked, detached } = record;
    if (writer === this.#environment.writer && asked?.broken !== true && detached === undefined) return 0;
    return this.observations.untilOverMs(resource, store, record, now.monotonicMs);
  }

  #isMine({ record }: Cell, tenure: ConditionalTenure): boolean {
    return record?.writer === this.#environment.writer && record.epoch === tenure.token;
  }

  /** Whether a single tenure blocks every majority. Split votes don't. */
  #isHeld({ blocked }: Board): boolean {
    const { size, majority } = this.#environment.farm;
    return blocked.some(({ record: { writer, epoch } }) => {
      const same = blocked.filter(({ record }) => record.writer === writer && record.epoch === epoch);
      return same.length > size - majority;
    });
  }

  #held(open: number, blocked: Board["blocked"]): AttemptResult<ConditionalTenure> {
    const { farm, settings } = this.#environment;
    const soonest = blocked.toSorted((a, b) => a.untilMs - b.untilMs);
    const needed = soonest[Math.min(soonest.length, farm.majority - open) - 1]!;
    const retryInMs = Math.max(1, Math.min(settings.pollMs, needed.untilMs));
    return { kind: "held", holder: needed.record.writer, retryInMs };
  }

  /** The number of stores with a later tenure's record. */
  #successors(tenure: ConditionalTenure): number {
    return tenure.cells.filter((cell) => (cell?.record?.epoch ?? 0n) > tenure.token).length;
  }

  #greatest(cells: readonly (CellOrError | undefined)[]): { epoch: bigint; number: bigint } {
    let [epoch, number] = [0n, 0n];
    for (let store = 0; store < this.#environment.farm.size; store += 1) {
      const floor = this.#environment.farm.floorOf(store);
      const cell = cells[store];
      const record = isCell(cell) ? cell.record : undefined;
      epoch = max(epoch, record?.epoch ?? floor.epoch);
      number = max(number, record?.number ?? floor.number);
    }
    return { epoch, number };
  }

  #record(
    resource: string,
    epoch: bigint,
    number: bigint,
    state: DeltaRecord["state"],
    leaseMs: number,
    also: { readonly data?: string | undefined; readonly detached?: string | undefined } = {},
  ): DeltaRecord {
    const { writer, label, settings } = this.#environment;
    this.#nonce += 1;
    const record = {
      resource,
      epoch,
      number,
      writer,
      nonce: this.#nonce,
      state,
      leaseMs,
      delayMs: settings.delayMs,
    };
    const { data, detached } = also;
    return {
      ...record,
      ...(label !== undefined && { label }),
      ...(detached !== undefined && { detached }),
      ...(data !== undefined && { data }),
    };
  }

  #timeoutMs(wish: AttemptWish, now: BothClocks): number {
    return Math.max(1, Math.min(this.#environment.settings.delayMs, wish.deadlineMs - now.monotonicMs));
  }

  #noMajority(cells: readonly (CellOrError | undefined)[]): LeaseholdError {
    const { size, majority } = this.#environment.farm;
    const errors = Array.from({ length: size }, (_, store) => {
      const cell = cells[store];
      return cell !== undefined && "error" in cell ? cell.error : undefined;
    });
    return noMajority(size, majority, cells.filter(isCell).length, errors);
  }
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function failed(why: string): AttemptResult<ConditionalTenure> {
  return { kind: "failed", error: new LeaseholdError("TIMEOUT", why) };
}
