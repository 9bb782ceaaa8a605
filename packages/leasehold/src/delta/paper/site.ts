import { decodeRecord, encodeRecord } from "../record/codec.js";
import { crc32c } from "../record/crc32c.js";
import { greatestBigint } from "../record/fields.js";
import type { ProtocolEnvironment } from "../lease-protocol.js";
import { stretched } from "../../common/clock-rates.js";
import type { DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";
import { RegularRegister, numberAfter } from "./register.js";
import type { ReadSeen } from "./register.js";
import { compareStamps, sameStamp } from "../record/stamp.js";

/** Bits of an epoch that identify the writer, where that is needed. */
const writerBits = 32n;

/** A read that was answered. */
export type Seen = ReadSeen<DeltaRecord>;

/** A record that blocks the register, and until when, on the asking process's steady clock. */
export interface Obstacle {
  /**
   * `undefined`: never written. Where stores cannot compare and set, that does not prove that nobody holds.
   */
  readonly record: DeltaRecord | undefined;
  readonly overAtMs: number;
}

/** Records of one register that a process remembers. Forgetting one is safe: its wait starts again. */
const observedMax = 1_000;

export interface SiteOptions {
  readonly environment: ProtocolEnvironment;
  readonly resource: string;
  /** Δ, ms. */
  readonly leaseMs: number;
  /** Creates the timestamps of one process, unique across all its sites. */
  readonly nonces: Nonces;
}

/** A counter that increases at every write of a process. */
export class Nonces {
  /**
   * The greatest epoch that the process has chosen, at any register. Attempts with an unknown outcome count.
   * So does a tenure whose record was overwritten while delays were not bounded.
   */
  lastEpoch = 0n;
  #last = 0;

  next(): number {
    return (this.#last += 1);
  }
}

/** One process at one register: the common part of contending, renewing and releasing. */
export class Site {
  /** x in the figures. */
  readonly register: RegularRegister<DeltaRecord>;
  readonly environment: ProtocolEnvironment;
  readonly resource: string;
  leaseMs: number;
  /** The public data of its next tenure, as JSON. */
  data: string | undefined;
  readonly #nonces: Nonces;
  /**
   * By record: the end of the first read that returned it, on the steady clock. The most recently read is
   * last.
   */
  readonly #firstSeenMs = new Map<string, number>();

  constructor({ environment, resource, leaseMs, nonces }: SiteOptions) {
    const { farm, settings } = environment;
    const codec = { encode: encodeRecord, decode: decodeRecord };
    const name = leaseRegister(resource);
    this.register = new RegularRegister({ farm, name, codec, delayMs: settings.delayMs, runsOut: true });
    this.environment = environment;
    this.resource = resource;
    this.leaseMs = leaseMs;
    this.#nonces = nonces;
  }

  /** δ, ms. */
  get delayMs(): number {
    return this.environment.settings.delayMs;
  }

  /** The name under which this process contends. Contenders with the same name may share an epoch. */
  protected get contender(): string {
    return this.environment.writer;
  }

  /** The epoch of a record that begins a tenure: greater than all that the read returned. */
  protected nextEpoch(seen: Seen): bigint {
    const shown = shownBy(seen).map(({ epoch }) => epoch);
    this.#nonces.lastEpoch = this.#epochAfter(
      greatestBigint([...shown, seen.floor.epoch, this.#nonces.lastEpoch]),
    );
    return this.#nonces.lastEpoch;
  }

  /** A record that begins a tenure: the next epoch, the next number. */
  recordAfter(seen: Seen): DeltaRecord {
    const { settings, writer, label } = this.environment;
    return {
      resource: this.resource,
      epoch: this.nextEpoch(seen),
      number: numberAfter(seen),
      writer,
      nonce: this.nextNonce(),
      state: "held",
      leaseMs: this.leaseMs,
      delayMs: settings.delayMs,
      ...(label !== undefined && { label }),
      ...(this.data !== undefined && { data: this.data }),
    };
  }

  /** The record of a renewal by a holder that has read `_seen`: a fresh timestamp, the same epoch. */
  renewed(held: DeltaRecord, number: bigint, _seen: Seen): DeltaRecord {
    return { ...held, number, nonce: this.nextNonce(), leaseMs: this.leaseMs };
  }

  /**
   * The record that frees `held`. It has the same number as that record, so it is smaller than any record of
   * a successor, however late it lands.
   */
  freed(held: DeltaRecord): DeltaRecord {
    return { ...held, nonce: this.nextNonce(), state: "free" };
  }

  /**
   * How long a record must be unchanged until nobody can hold by it (Fig. 2, line 5). The Δ and δ are those
   * in the record, which its writer uses; stretched, because both clocks may be off by ρ.
   */
  waitMs(record: DeltaRecord | undefined): number {
    const { settings } = this.environment;
    const own = { leaseMs: this.leaseMs, delayMs: settings.delayMs };
    const { leaseMs, delayMs } = record ?? own;
    return stretched(leaseMs + 6 * Math.max(delayMs, settings.delayMs), this.#rateError);
  }

  /** 2δ (Fig. 2, line 10), with the greatest δ of the possible contenders. */
  pauseMs(seen: Seen): number {
    const { settings } = this.environment;
    const longer = (ms: number, record: DeltaRecord) => Math.max(ms, record.delayMs);
    return stretched(2 * shownBy(seen).reduce(longer, settings.delayMs), this.#rateError);
  }

  /**
   * The obstacle that keeps a process that has just read the register from claiming it, and until when, on
   * this process's steady clock; `undefined` when it may be claimed now. The greatest record alone is not
   * enough: a crashed contender may have left it at only one store, where it hides the records by which a
   * holder renews at the others. So every record of any store must have been unchanged for its own wait since
   * this process first read it, and for `backOffMs` more after a failed claim.
   */
  obstacle(seen: Seen, backOffMs = 0): Obstacle | undefined {
    this.#observe(seen);
    const isFree = this.#isFree(seen);
    if (isFree && backOffMs === 0) return undefined;
    let obstacle: Obstacle | undefined;
    for (const record of isFree ? [seen.value] : this.#waitedFor(seen)) {
      const overAtMs = this.#sinceMs(record) + (isFree ? 0 : this.waitMs(record)) + backOffMs;
      if (overAtMs > seen.begun.monotonicMs && overAtMs > (obstacle?.overAtMs ?? -Infinity))
        obstacle = { record, overAtMs };
    }
    return obstacle;
  }

  /** Whether a claim holds by the record that it wrote, given its last read, `again`. */
  isMine(again: Seen, record: DeltaRecord): boolean {
    return sameStamp(again.value, record);
  }

  /** Whether the epoch of a successful claim may still be used as a token. A sole holder has the greatest. */
  isLatest(_again: Seen, _record: DeltaRecord): boolean {
    return true;
  }

  /**
   * Whether a hold continues despite the records that its renewal finds at its start. A greater record with
   * the same number belongs to a contender that had not read this hold's record and has lost to it, perhaps
   * by crashing half-way. Only a record with a greater number can be a successor's.
   */
  isNoSuccessor(stores: Seen["stores"], held: DeltaRecord): boolean {
    return this.#areTooFew(stores, ({ number }) => number > held.number);
  }

  /** Whether a renewal that reads `stores` after its pause continues the hold by the record that it wrote. */
  isStillMine(stores: Seen["stores"], record: DeltaRecord): boolean {
    return this.#areTooFew(stores, (other) => compareStamps(other, record) > 0);
  }

  /**
   * Whether a process that has read `seen`, and found no obstacle, may write `_next` over `content`. Another
   * process's record is replaced only after it has been unchanged for its wait. (Called only where stores
   * compare and set.)
   */
  mayTake(content: DeltaRecord, seen: Seen, _next: DeltaRecord): boolean | DeltaRecord {
    if (compareStamps(content, seen.value) > 0) return false;
    if (isFree(content)) return true;
    return this.#sinceMs(content) + this.waitMs(content) <= seen.begun.monotonicMs;
  }

  /**
   * Whether a holder that has read `seen` may renew by writing `_next` over `content`: a record that is not a
   * successor's has lost to it.
   */
  mayRenewOver(content: DeltaRecord, seen: Seen, _next: DeltaRecord): boolean | DeltaRecord {
    return compareStamps(content, seen.value) <= 0;
  }

  /**
   * Whether others may hold by the record. Then it must not be freed, neither after a failed claim nor by a
   * release.
   */
  get isShared(): boolean {
    return false;
  }

  /** Whether this record, if it is the later one, ends the hold of a process that has another record. */
  protected endsHold(_record: DeltaRecord): boolean {
    return true;
  }

  /** Whether a process that finds this held record must wait for its end. */
  protected mustWaitFor(_record: DeltaRecord): boolean {
    return true;
  }

  /** A random pause, long enough for another contender to claim, ms. */
  backOffMs(): number {
    return this.environment.random.next() * 4 * this.delayMs;
  }

  /**
   * The next epoch. Where stores cannot compare and set, two processes could choose the same epoch while
   * delays are not bounded: there its lower bits identify the writer.
   */
  #epochAfter(epoch: bigint): bigint {
    if (this.register.isAtomic) return epoch + 1n;
    const hash = BigInt(crc32c(new TextEncoder().encode(this.contender)));
    return (((epoch >> writerBits) + 1n) << writerBits) | hash;
  }

  /** ρ */
  get #rateError(): number {
    return this.environment.settings.clockRateError;
  }

  /** Another nonce of this process. */
  protected nextNonce(): number {
    return this.#nonces.next();
  }

  /**
   * Whether no holder blocks the claim. True only where stores compare and set and a majority of them is
   * free: a holder would have one of those. Without compare-and-set a late write could make a held register
   * look free.
   */
  #isFree({ stores }: Seen): boolean {
    const free = stores.filter((shown) => shown?.every(isFree) === true).length;
    return this.register.isAtomic && free >= this.environment.farm.majority;
  }

  /**
   * Whether no majority can have shown a `later` record before this read began, as would be the case for a
   * successor's record. A record at fewer stores belongs to a loser: a contender that alone read a crashed
   * one's record may lose with a greater number than the winner's. A store that has not answered may have
   * that record, too.
   */
  #areTooFew(stores: Seen["stores"], later: (record: DeltaRecord) => boolean): boolean {
    const { size, majority } = this.environment.farm;
    const isClear = (record: DeltaRecord) => !this.endsHold(record) || !later(record);
    const clear = stores.filter((shown) => shown?.every(isClear) === true).length;
    return size - clear < majority;
  }

  /** The records whose end must be awaited; `undefined` stands for a register that was never written. */
  #waitedFor(seen: Seen): readonly (DeltaRecord | undefined)[] {
    const { value } = seen;
    const isHeld = value !== undefined && !isFree(value);
    const first = isHeld && !this.mustWaitFor(value) ? [] : [value];
    return [...first, ...shownBy(seen).filter((each) => !isFree(each) && this.mustWaitFor(each))];
  }

  #observe(seen: Seen): void {
    for (const record of [seen.value, ...shownBy(seen)]) {
      const key = keyOf(record);
      const sinceMs = this.#firstSeenMs.get(key) ?? seen.ended.monotonicMs;
      this.#firstSeenMs.delete(key);
      this.#firstSeenMs.set(key, sinceMs);
    }
    for (const key of this.#firstSeenMs.keys()) {
      if (this.#firstSeenMs.size <= observedMax) break;
      this.#firstSeenMs.delete(key);
    }
  }

  /** When this process first read the record, on its steady clock. */
  #sinceMs(record: DeltaRecord | undefined): number {
    return this.#firstSeenMs.get(keyOf(record)) ?? Infinity;
  }
}

/** All records that the stores returned. */
export function shownBy({ stores }: Seen): readonly DeltaRecord[] {
  return stores.flatMap((shown) => shown ?? []);
}

/** A key unique to one write. */
function keyOf(record: DeltaRecord | undefined): string {
  return record === undefined ? "" : `${record.number} ${record.nonce} ${record.writer}`;
}

function isFree(record: DeltaRecord): boolean {
  return record.state === "free";
}
