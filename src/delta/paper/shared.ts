import { faults } from "#delta-faults";
import type { Protocol } from "../effects.js";
import { lookAtClocks } from "../effects.js";
import type { DeltaRecord } from "../record.js";
import { contend } from "./contend.js";
import { release } from "./renew.js";
import { type Seen, Site } from "./site.js";
import { Held, Idle } from "./states.js";

/**
 * Shared and exclusive leases (section 10): readers contend under one common name, so that one's record is as good for it as
 * another's, and nobody waits for those of the same name; a writer contends under its own, and waits for all of them.
 * Readers of one time share an epoch. A record with `readers` bears the common name; who wrote it stands inside.
 */
export class ReaderSite extends Site {
  override recordAfter(seen: Seen): DeltaRecord {
    const record = { ...super.recordAfter(seen), readers: [this.environment.writer] };
    return isReaders(seen.value) ? covering(record, seen.value) : record;
  }

  /** One name for all: also those that begin at the same moment share an epoch. */
  protected override get contender(): string {
    return "readers";
  }

  protected override nextEpoch(seen: Seen): bigint {
    return isReaders(seen.value) ? seen.value.epoch : super.nextEpoch(seen);
  }

  /** What others hold by, who came later, is in it too. */
  override renewed(held: DeltaRecord, number: bigint, seen: DeltaRecord | undefined): DeltaRecord {
    const record = super.renewed(held, number, seen);
    return covering(covering(record, held), isReaders(seen) ? seen : held);
  }

  override maySkipWait(seen: Seen): boolean {
    return isReaders(seen.value) || super.maySkipWait(seen);
  }

  override isMine(value: DeltaRecord | undefined, record: DeltaRecord): boolean {
    return (isReaders(value) && covers(value, record)) || super.isMine(value, record);
  }

  override isNoSuccessor(value: DeltaRecord | undefined, held: DeltaRecord): boolean {
    return isReaders(value) || super.isNoSuccessor(value, held);
  }

  override mayReplace(
    content: DeltaRecord,
    seen: DeltaRecord | undefined,
    next: DeltaRecord,
  ): boolean | "done" {
    if (!isReaders(content)) return super.mayReplace(content, seen, next);
    if (covers(next, content)) return true;
    return covers(content, next) && "done";
  }
}

/** Waits until no writer holds the register, and reads it together with other readers. */
export function contendShared(site: ReaderSite, from: Idle): Protocol<Held | Idle> {
  return contend(site, from);
}

/** A reader that is done just stops renewing: the record that stands there may be another's hold as well. */
export function* releaseShared(site: ReaderSite, held: Held): Protocol<Idle> {
  if (faults.readerReleaseFreesAll) return yield* release(site, held);
  yield lookAtClocks;
  return new Idle("released");
}

function isReaders(record: DeltaRecord | undefined): record is DeltaRecord {
  return record?.readers !== undefined && record.state === "held";
}

/**
 * Is `record` as good for its readers as `other`? By its Δ a writer waits for all of them, and the writer's epoch is one more: so
 * neither may ever become less.
 */
function covers(record: DeltaRecord, other: DeltaRecord): boolean {
  if (faults.readerHidesOthers) return true;
  return record.leaseMs >= other.leaseMs && record.epoch >= other.epoch;
}

function covering(record: DeltaRecord, other: DeltaRecord): DeltaRecord {
  if (faults.readerHidesOthers) return record;
  const epoch = record.epoch > other.epoch ? record.epoch : other.epoch;
  return { ...record, epoch, leaseMs: Math.max(record.leaseMs, other.leaseMs) };
}
