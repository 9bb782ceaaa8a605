import type { MemberId } from "../../raft/types.js";
import { type MemberRecord, writeMemberRecord } from "./member-file.js";

/**
 * Remembers which disk each of the other servers has. One that has lost its disk has forgotten its votes and what it had
 * acknowledged: it must not take part under its old name (Raft rests on what servers have promised).
 */
export class DiskBook {
  readonly #folder: string;
  readonly #record: MemberRecord;
  /** Only what is on our own disk. */
  #disks: ReadonlyMap<MemberId, bigint>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, record: MemberRecord) {
    this.#folder = folder;
    this.#record = record;
    this.#disks = record.disks;
  }

  /**
   * The first one that is heard of counts, and is on our own disk before the answer is given. One that could not be written
   * is not known, and the next who asks makes a try of its own.
   *
   * @throws LeaseholdError `DISK_FAILED`
   */
  async isKnown(member: MemberId, disk: bigint): Promise<boolean> {
    const known = this.#disks.get(member);
    if (known !== undefined) return known === disk;
    const learning = this.#last.then(() => this.#learn(member, disk));
    this.#last = learning.catch(() => undefined);
    return learning;
  }

  async #learn(member: MemberId, disk: bigint): Promise<boolean> {
    // Somebody may have asked the same meanwhile.
    const known = this.#disks.get(member);
    if (known !== undefined) return known === disk;
    const disks = new Map(this.#disks).set(member, disk);
    await writeMemberRecord(this.#folder, { ...this.#record, disks });
    this.#disks = disks;
    return true;
  }
}
