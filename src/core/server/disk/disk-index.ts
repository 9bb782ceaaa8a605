import type { MemberId } from "../../raft/types.js";
import { createHmac, timingSafeEqual } from "node:crypto";
import { type MemberRecord, writeMemberRecord } from "./member-file.js";

const tokenBytes = 16;

/**
 * Remembers which disk each of the other servers has. One that has lost its disk has forgotten its votes and
 * what it had acknowledged: it must not take part under its old name (Raft rests on what servers have
 * promised).
 */
export class DiskIndex {
  readonly #folder: string;
  /** Only what is on our own disk. */
  #record: MemberRecord;
  #last: Promise<unknown> = Promise.resolve();
  /** Tokens that are about to be written. */
  readonly #given = new Map<MemberId, string>();

  constructor(folder: string, record: MemberRecord) {
    this.#folder = folder;
    this.#record = record;
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

  async #learn(member: MemberId, disk: bigint): Promise<boolean> {
    // Somebody may have asked the same meanwhile.
    const known = this.#record.disks.get(member);
    if (known !== undefined) return known === disk;
    await this.#write({ disks: new Map(this.#record.disks).set(member, disk) });
    return true;
  }

  async #write(changed: Partial<MemberRecord>): Promise<void> {
    const record = { ...this.#record, ...changed };
    await writeMemberRecord(this.#folder, record);
    this.#record = record;
  }

  // By what a member that has moved is known again

  /**
   * What this server gives to a member that it calls at the address of the configuration. Whoever shows it
   * later was there then.
   */
  tokenFor(member: MemberId): Uint8Array {
    const id = Buffer.alloc(8);
    id.writeBigUInt64BE(member);
    return createHmac("sha256", Buffer.from(this.#record.secret, "hex"))
      .update(id)
      .digest()
      .subarray(0, tokenBytes);
  }

  isTokenOf(member: MemberId, shown: Uint8Array): boolean {
    return shown.length === tokenBytes && timingSafeEqual(shown, this.tokenFor(member));
  }

  /** What the member has given to this server; empty if nothing. */
  tokenOf(member: MemberId): Buffer {
    return Buffer.from(this.#given.get(member) ?? this.#record.tokens.get(member) ?? "", "hex");
  }

  /**
   * A member has given a token to this server: resolves when it is on disk. Tokens of former members go then.
   *
   * @throws LeaseholdError `DISK_FAILED`
   */
  async keepToken(member: MemberId, token: Uint8Array, members: readonly MemberId[]): Promise<void> {
    const text = Buffer.from(token).toString("hex");
    if (token.length !== tokenBytes) return;
    // One of each member: who gives another each time waits for one write, and fills no memory.
    if (this.#record.tokens.get(member) === text) this.#given.delete(member);
    else this.#given.set(member, text);
    const keeping = this.#last.then(async () => {
      if (this.#given.size === 0) return;
      const tokens = new Map([...this.#record.tokens, ...this.#given].filter(([id]) => members.includes(id)));
      this.#given.clear();
      await this.#write({ tokens });
    });
    this.#last = keeping.catch(() => undefined);
    await keeping;
  }
}
