import type { MemberId } from "../../raft/types.js";
import { type MemberRecord, writeMemberRecord } from "./member-file.js";

/**
 * Remembers which disk each of the other servers has. One that has lost its disk has forgotten its votes and what it had
 * acknowledged: it must not take part under its old name (Raft rests on what servers have promised).
 */
export class DiskBook {
  readonly #folder: string;
  readonly #record: MemberRecord;
  readonly #disks: Map<MemberId, bigint>;
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string, record: MemberRecord) {
    this.#folder = folder;
    this.#record = record;
    this.#disks = new Map(record.disks);
  }

  /** The first one that is heard of counts, and is on our own disk before the answer is given. */
  async isKnown(member: MemberId, disk: bigint): Promise<boolean> {
    const known = this.#disks.get(member);
    if (known !== undefined && known !== disk) return false;
    if (known === undefined) {
      this.#disks.set(member, disk);
      const disks = new Map(this.#disks);
      this.#writing = this.#writing.then(() => writeMemberRecord(this.#folder, { ...this.#record, disks }));
    }
    await this.#writing;
    return true;
  }
}
