import type { MemberId } from "../../raft/types.js";
import { type MemberRecord, writeMemberRecord } from "./member-file.js";

/**
 * Remembers which disk each of the other servers has. One that has lost its disk has forgotten its votes and
 * what it had acknowledged: it must not take part under its old name (Raft rests on what servers have
 * promised).
 */
export class DiskIndex {
  readonly #folder: string;
  /** Only what is on our own disk. */
  #record: MemberRecord;
  #version: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, record: MemberRecord) {
    this.#folder = folder;
    this.#record = record;
    this.#version = record.version;
  }

  /**
   * Undefined as long as nothing is known of the member. What an incoming connection says is not believed
   * then: an attacker could say it first, and keep the member out for ever.
   */
  isKnown(member: MemberId, disk: bigint): boolean | undefined {
    const known = this.#record.disks.get(member);
    return known === undefined ? undefined : known === disk;
  }

  /**
   * What the member itself has said where we have called it, at the address of the configuration. The first
   * one counts, and is on our own disk before the answer is given: whether it is the known one. One that
   * could not be written is not known, and is learnt again.
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

  /** Of the cluster, as this server has written it or is writing it. */
  get version(): number {
    return this.#version;
  }

  /** The cluster speaks another version. @throws LeaseholdError `DISK_FAILED` */
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
    // Somebody may have asked the same meanwhile.
    const known = this.#record.disks.get(member);
    if (known !== undefined) return known === disk;
    await this.#write({ disks: new Map(this.#record.disks).set(member, disk) });
    return true;
  }
}
