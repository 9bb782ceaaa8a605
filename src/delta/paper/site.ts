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

/** Bits of an epoch that say whose it is, where that is needed. */
const writerBits = 32n;

/** A read that was answered. */
export type Seen = ReadSeen<DeltaRecord>;

/** What keeps a register from being taken, and until when, on the steady clock of the process that asks. */
export interface Obstacle {
  /** `undefined`: it was never written, and where stores cannot compare and set that is no proof that nobody holds. */
  readonly record: DeltaRecord | undefined;
  readonly overAtMs: number;
}

/** Records of one register that a process keeps in mind. Forgetting one is safe: it has to be waited for anew. */
const observedMax = 1_000;

export interface SiteOptions {
  readonly environment: ProtocolEnvironment;
  readonly resource: string;
  /** Δ, ms. */
  readonly leaseMs: number;
  /** Makes the timestamps of one process unique: shared by all its sites. */
  readonly nonces: Nonces;
}

/** One more at every write of a process. */
export class Nonces {
  /**
   * The greatest epoch that the process has given itself, at any register: an attempt of which nobody knows how it ended counts, and
   * so does a tenure whose record another has written over while delays were not bounded.
   */
  lastEpoch = 0n;
  #last = 0;

  next(): number {
    return (this.#last += 1);
  }
}

/** One process at one register: what contending, renewing and releasing have in common. */
export class Site {
  /** x in the figures. */
  readonly register: RegularRegister<DeltaRecord>;
  readonly environment: ProtocolEnvironment;
  readonly resource: string;
  leaseMs: number;
  /** What others are to read of its next tenure, as JSON. */
  data: string | undefined;
  readonly #nonces: Nonces;
  /** By record: when a read had ended that first showed it, on the steady clock. What was seen last comes last. */
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

  /** The name under which it contends: two of one name may have the same epoch. */
  protected get contender(): string {
    return this.environment.writer;
  }

  /** The epoch of a record that begins a tenure: greater than all that the read has shown. */
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
   * The record that frees `held`. It has the number of the record that it names, so it is smaller than whatever a
   * successor writes, however late it lands.
   */
  freed(held: DeltaRecord): DeltaRecord {
    return { ...held, nonce: this.nextNonce(), state: "free" };
  }

  /**
   * How long a record must stand unchanged until nobody can hold by it (Fig. 2, line 5): by the Δ and δ that its
   * writer wrote into it, as that one counts by them; stretched, as both clocks may be off by ρ.
   */
  waitMs(record: DeltaRecord | undefined): number {
    const { settings } = this.environment;
    const own = { leaseMs: this.leaseMs, delayMs: settings.delayMs };
    const { leaseMs, delayMs } = record ?? own;
    return stretched(leaseMs + 6 * Math.max(delayMs, settings.delayMs), this.#rateError);
  }

  /** 2δ (Fig. 2, line 10), by the greatest δ of those who may be contending. */
  pauseMs(seen: Seen): number {
    const { settings } = this.environment;
    const longer = (ms: number, record: DeltaRecord) => Math.max(ms, record.delayMs);
    return stretched(2 * shownBy(seen).reduce(longer, settings.delayMs), this.#rateError);
  }

  /**
   * What keeps the register from being taken by a process that has just read it, and until when, on this
   * process's steady clock; `undefined` when it may be taken now. Not the greatest record alone counts: it
   * may be what a crashed contender left half done on one store, and hides the records by which a holder
   * renews on the others. So whatever any store shows must have stood for its own wait since this process
   * first saw it, and for `backOffMs` more after a claim that failed.
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

  /** Does a claim that finds `again` at its end hold by the record that it wrote? */
  isMine(again: Seen, record: DeltaRecord): boolean {
    return sameStamp(again.value, record);
  }

  /** Is the epoch of such a claim still a token that may be given out? Who holds alone has the greatest. */
  isLatest(_again: Seen, _record: DeltaRecord): boolean {
    return true;
  }

  /**
   * Does what a renewal finds at its begin leave the hold alone? A greater record of the same number was written by one that
   * had not seen this hold's and has lost against it, perhaps by crashing half-way: only a greater number can be a successor's.
   */
  isNoSuccessor({ value }: Seen, held: DeltaRecord): boolean {
    return value !== undefined && value.number <= held.number;
  }

  /**
   * May a process that has read `seen`, and found no obstacle, write `_next` over `content`? Nothing of
   * another's is replaced that has not stood for its wait. (Only asked where stores compare and set.)
   */
  mayTake(content: DeltaRecord, seen: Seen, _next: DeltaRecord): boolean | DeltaRecord {
    if (compareStamps(content, seen.value) > 0) return false;
    if (isFree(content)) return true;
    return this.#sinceMs(content) + this.waitMs(content) <= seen.begun.monotonicMs;
  }

  /** May a holder that has read `seen` write `_next` over `content` to renew? What is not a successor's has lost against it. */
  mayRenewOver(content: DeltaRecord, seen: Seen, _next: DeltaRecord): boolean | DeltaRecord {
    return compareStamps(content, seen.value) <= 0;
  }

  /** What others hold by must not be freed: neither after a claim that came to nothing, nor by a release. */
  get isShared(): boolean {
    return false;
  }

  /** Must a process that finds this held record wait for its end? */
  protected mustWaitFor(_record: DeltaRecord): boolean {
    return true;
  }

  /** A random while, long enough for another to claim what both want, ms. */
  backOffMs(): number {
    return this.environment.random.next() * 4 * this.delayMs;
  }

  /**
   * One more. Where stores cannot compare and set, two could take the same one while delays are not bounded: there its
   * lower bits say whose it is.
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

  /** Another timestamp of this process. */
  protected nextNonce(): number {
    return this.#nonces.next();
  }

  /**
   * No holder is in the way. True only where stores compare and set and a majority of them is free: a holder
   * would have one of those. Without compare-and-set a late write could make a held register look free.
   */
  #isFree({ stores }: Seen): boolean {
    const free = stores.filter((shown) => shown?.every(isFree) === true).length;
    return this.register.isAtomic && free >= this.environment.farm.majority;
  }

  /** The records whose end must be waited for; `undefined` stands for a register that was never written. */
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

  /** Since when this process knows the record, on its steady clock. */
  #sinceMs(record: DeltaRecord | undefined): number {
    return this.#firstSeenMs.get(keyOf(record)) ?? Infinity;
  }
}

/** All that the stores have shown. */
export function shownBy({ stores }: Seen): readonly DeltaRecord[] {
  return stores.flatMap((shown) => shown ?? []);
}

/** Like no other write's. */
function keyOf(record: DeltaRecord | undefined): string {
  return record === undefined ? "" : `${record.number} ${record.nonce} ${record.writer}`;
}

function isFree(record: DeltaRecord): boolean {
  return record.state === "free";
}
