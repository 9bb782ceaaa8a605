import type { MemberId } from "../../raft/types.js";
import { type MemberRecord, writeMemberRecord } from "./member-file.js";

/**
 * Remembers the disks of the other servers. A server that lost its disk has forgotten its votes and
 * acknowledgements. It must not take part under its old name, as Raft relies on these promises.
 */
export class DiskIndex {
  readonly #folder: string;
  /** Contains only what is on our own disk. */
  #record: MemberRecord;
  #version: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, record: MemberRecord) {
    this.#folder = folder;
    this.#record = record;
    this.#version = record.version;
  }

  /**
   * Whether this is the member's known disk; undefined while none is known. Until then, claims of incoming
   * connections are not trusted: an attacker could make one first, and exclude the member forever.
   */
  isKnown(member: MemberId, disk: bigint): boolean | undefined {
    const known = this.#record.disks.get(member);
    return known === undefined ? undefined : known === disk;
  }

  /**
   * Notes a member's own claim, from a connection dialed to the configured address. The first claim counts,
   * and is on our own disk before this resolves. After a failed write the disk is still unknown, and can be
   * learnt again.
   *
   * @returns whether it is the known disk
   * @throws LeaseholdError `DISK_FAILED`
   */
  async learn(member: MemberId, disk: bigint): Promise<boolean> {
    const known = this.isKnown(member, disk);
    if (known !== undefined) return known;
    const learning = this.#last.then(() => this.#learn(member, disk));
    this.#last = learning.catch(() => undefined);
    return learning;
  }

  /** The cluster's version, as written or being written. */
  get version(): number {
    return this.#version;
  }

  /**
   * Records a new version of the cluster.
   *
   * @throws LeaseholdError `DISK_FAILED`
   */
  async raise(version: number): Promise<void> {
    this.#version = version;
    const raising = this.#last.then(() => this.#write({ version }));
    this.#last = raising.catch(() => undefined);
    await raising;
  }

  async #write(changed: Partial<MemberRecord>): Promise<void> {
    const record = { ...this.#record, ...changed };
    await writeMemberRecord(this.#folder, record);
    this.#record = record;
  }

  async #learn(member: MemberId, disk: bigint): Promise<boolean> {
    // A concurrent call may have learnt the disk.
    const known = this.#record.disks.get(member);
    if (known !== undefined) return known === disk;
    await this.#write({ disks: new Map(this.#record.disks).set(member, disk) });
    return true;
  }
}
