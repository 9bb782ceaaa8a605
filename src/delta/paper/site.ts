import { faults } from "#delta-faults";
import { decodeRecord, encodeRecord } from "../codec.js";
import { crc32c } from "../crc32c.js";
import type { Reading } from "../effects.js";
import { type ProtocolEnvironment, stretched } from "../lease-protocol.js";
import type { DeltaRecord } from "../record.js";
import { leaseRegister } from "../registers.js";
import { RegularRegister, numberAfter } from "./register.js";
import type { ReadResult } from "./register.js";
import { compareStamps, sameStamp } from "../stamp.js";

/** Bits of an epoch that say whose it is, where that is needed. */
const writerBits = 32n;

/** A read that was answered. */
export type Seen = ReadResult<DeltaRecord> & { readonly kind: "read" };

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
  readonly #nonces: Nonces;

  constructor({ environment, resource, leaseMs, nonces }: SiteOptions) {
    const { farm, settings } = environment;
    const codec = { encode: encodeRecord, decode: decodeRecord };
    const name = leaseRegister(resource);
    this.register = new RegularRegister({ farm, name, codec, delayMs: settings.delayMs });
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

  /** The epoch of a record that begins a tenure. */
  protected nextEpoch(seen: Seen): bigint {
    const epochs = [seen.value?.epoch ?? 0n, seen.floor, this.#nonces.lastEpoch];
    this.#nonces.lastEpoch = this.#epochAfter(epochs.reduce((a, b) => (a > b ? a : b)));
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
      nonce: this.#nonces.next(),
      state: "held",
      leaseMs: this.leaseMs,
      delayMs: settings.delayMs,
      ...(label !== undefined && { label }),
    };
  }

  /** The record of a renewal by whoever has found `_seen`: a fresh timestamp, the same epoch. */
  renewed(held: DeltaRecord, number: bigint, _seen: DeltaRecord | undefined): DeltaRecord {
    return { ...held, number, nonce: this.#nonces.next(), leaseMs: this.leaseMs };
  }

  /**
   * The record that frees `held`. It has the number of the record that it names, so it is smaller than whatever a
   * successor writes, however late it lands.
   */
  freed(held: DeltaRecord): DeltaRecord {
    return { ...held, nonce: this.#nonces.next(), state: "free" };
  }

  /**
   * How long a record must stand unchanged until nobody can hold by it (Fig. 2, line 5): by the Δ and δ that its
   * writer wrote into it, as that one counts by them; stretched, as both clocks may be off by ρ.
   */
  waitMs(record: DeltaRecord | undefined): number {
    const { settings } = this.environment;
    const own = { leaseMs: this.leaseMs, delayMs: settings.delayMs };
    const { leaseMs, delayMs } = faults.ownWait ? own : (record ?? own);
    const delays = faults.waitFiveDelays ? 5 : 6;
    return stretched(leaseMs + delays * Math.max(delayMs, settings.delayMs), settings.clockRateError);
  }

  /** 2δ (Fig. 2, line 10), by the greater δ of those who may be contending. */
  pauseMs(record: DeltaRecord | undefined): number {
    const { settings } = this.environment;
    if (faults.noPause) return 0;
    return stretched(2 * Math.max(settings.delayMs, record?.delayMs ?? 0), settings.clockRateError);
  }

  /**
   * May the first wait be skipped, as nobody can be in the way? Only where stores compare and set, and a majority of them is
   * free: whoever held would have one of those. Without compare-and-set a late write could make a held register look free.
   */
  maySkipWait({ value, each }: Seen): boolean {
    if (faults.freeShortcutWithoutCompareAndSet) return isFree(value);
    return this.register.isAtomic && each.filter(isFree).length >= this.environment.farm.majority;
  }

  /** Is what a claim or a renewal finds at its end the record that it wrote? */
  isMine(value: DeltaRecord | undefined, record: DeltaRecord): boolean {
    return sameStamp(value, record);
  }

  /**
   * Does what a renewal finds at its begin leave the hold alone? A greater record of the same number was written by one that
   * had not seen this hold's and has lost against it, perhaps by crashing half-way: only a greater number can be a successor's.
   */
  isNoSuccessor(value: DeltaRecord | undefined, held: DeltaRecord): boolean {
    return value !== undefined && value.number <= held.number;
  }

  /** May `_next` be written over `content` by whoever has read `seen`? (Only asked where stores compare and set.) */
  mayReplace(content: DeltaRecord, seen: DeltaRecord | undefined, _next: DeltaRecord): boolean | "done" {
    return compareStamps(content, seen) <= 0;
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

  /** From when on Δ counts: before the write was sent. The paper's own count, from the return of contend, comes with 6δ. */
  holdsFrom(writeBegun: Reading, returned: Reading): Reading {
    return faults.holdFromReturn ? returned : writeBegun;
  }
}

function isFree(record: DeltaRecord | undefined): boolean {
  return record === undefined || record.state === "free";
}
