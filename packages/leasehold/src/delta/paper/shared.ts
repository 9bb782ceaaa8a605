import type { DeltaRecord } from "../record/record.js";
import { greatestBigint } from "../record/fields.js";
import { compareStamps } from "../record/stamp.js";
import { type Seen, shownBy, Site } from "./site.js";

/**
 * Shared and exclusive leases (section 10): readers contend under one common name and don't wait for each
 * other; a writer contends under its own name, and waits for all. Both use the same `contend`, renewals and
 * `release`. A reader that joins others shares their epoch, unless its read shows that a writer may have held
 * meanwhile. Then it chooses a greater epoch, which the others adopt with their renewals. A record with
 * `readers` has the common name; its actual writer is listed inside.
 *
 * In a store with one cell a reader's record replaces another reader's, and from then on keeps writers out
 * for both. So it must be at least as good for the other (`covers`), and nobody ever frees it: it expires by
 * itself.
 */
export class ReaderSite extends Site {
  override recordAfter(seen: Seen): DeltaRecord {
    const record = { ...super.recordAfter(seen), readers: [this.environment.writer] };
    return readersIn(seen).reduce(covering, record);
  }

  /** One name for all readers, so that readers that begin at the same moment share an epoch, too. */
  protected override get contender(): string {
    return "readers";
  }

  /** The epoch of the present readers, unless a writer may have had it or a greater one. */
  protected override nextEpoch(seen: Seen): bigint {
    const joined = greatestBigint(readersIn(seen).map(({ epoch }) => epoch));
    const others = greatestBigint([...othersIn(seen).map(({ epoch }) => epoch), seen.floor.epoch]);
    return joined > others ? joined : super.nextEpoch(seen);
  }

  override renewed(held: DeltaRecord, number: bigint, seen: Seen): DeltaRecord {
    return [held, ...readersIn(seen)].reduce(covering, super.renewed(held, number, seen));
  }

  protected override endsHold(record: DeltaRecord): boolean {
    return !isReaders(record);
  }

  protected override mustWaitFor(record: DeltaRecord): boolean {
    return !isReaders(record);
  }

  /** The greatest record of a participant other than a reader decides: a writer treats all readers as one. */
  override isMine(again: Seen, record: DeltaRecord): boolean {
    return othersIn(again).every((other) => compareStamps(other, record) < 0);
  }

  /**
   * Another reader may have chosen a greater epoch meanwhile, because it read other stores: one that has come
   * back empty, or that alone has a writer's record. A resource that checks tokens may already refuse smaller
   * ones, so this reader has to retry, and joins that epoch.
   */
  override isLatest(again: Seen, { epoch }: DeltaRecord): boolean {
    return readersIn(again).every((other) => other.epoch <= epoch);
  }

  override mayTake(content: DeltaRecord, seen: Seen, next: DeltaRecord): boolean | DeltaRecord {
    return isReaders(content) ? this.#above(content, next) : super.mayTake(content, seen, next);
  }

  override mayRenewOver(content: DeltaRecord, seen: Seen, next: DeltaRecord): boolean | DeltaRecord {
    return isReaders(content) ? this.#above(content, next) : super.mayRenewOver(content, seen, next);
  }

  override get isShared(): boolean {
    return true;
  }

  /**
   * The record to write over another reader's: `next`, or a greater one that also covers the other. It is
   * always written, however good the other's record is, because a writer may have been waiting long for the
   * end of that record.
   */
  #above(content: DeltaRecord, next: DeltaRecord): true | DeltaRecord {
    if (compareStamps(content, next) < 0 && covers(next, content)) return true;
    const number = greatestBigint([content.number, next.number]) + 1n;
    return { ...covering(next, content), number, nonce: this.nextNonce() };
  }
}

function isReaders(record: DeltaRecord): boolean {
  return record.readers !== undefined && record.state === "held";
}

function readersIn(seen: Seen): readonly DeltaRecord[] {
  return shownBy(seen).filter(isReaders);
}

function othersIn(seen: Seen): readonly DeltaRecord[] {
  return shownBy(seen).filter((record) => !isReaders(record));
}

/**
 * Whether `record` is as good for its readers as `other`. A writer waits by its Δ for all of them, and the
 * writer's epoch is one more, so neither may ever decrease.
 */
function covers(record: DeltaRecord, other: DeltaRecord): boolean {
  return record.leaseMs >= other.leaseMs && record.epoch >= other.epoch;
}

function covering(record: DeltaRecord, other: DeltaRecord): DeltaRecord {
  const epoch = greatestBigint([record.epoch, other.epoch]);
  return { ...record, epoch, leaseMs: Math.max(record.leaseMs, other.leaseMs) };
}
