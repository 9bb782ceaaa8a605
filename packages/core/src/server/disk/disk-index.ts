import type { MemberId } from "../../raft/types.js";
import { type MemberRecord, writeMemberRecord } from "./member-file.js";

/**
 * Remembers the disk of each other server. A server that has lost its disk has forgotten its votes and
 * acknowledgements: it must not take part under its old name (Raft relies on promises).
 */
export class DiskIndex {
  readonly #folder: string;
  /** Only content of our own disk. */
  #record: MemberRecord;
  #version: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, record: MemberRecord) {
    this.#folder = folder;
    this.#record = record;
    this.#version = record.version;
  }

  /**
   * Undefined while nothing is known of the member. Claims of incoming connections are not trusted then: an
   * attacker could make one first, and exclude the member for ever.
   */
  isKnown(member: MemberId, disk: bigint): boolean | undefined {
    const known = this.#record.disks.get(member);
    return known === undefined ? undefined : known === disk;
  }

  /**
   * Notes the member's own claim, from a connection dialed to the configuration's address. The first one
   * counts, and is on our own disk before this resolves: whether it is the known one. A failed write leaves
   * it unknown, to be learnt again.
   *
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

  /** Records a new version of the cluster. @throws LeaseholdError `DISK_FAILED` */
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
    // A concurrent call may have learnt it.
    const known = this.#record.disks.get(member);
    if (known !== undefined) return known === disk;
    await this.#write({ disks: new Map(this.#record.disks).set(member, disk) });
    return true;
  }
}
