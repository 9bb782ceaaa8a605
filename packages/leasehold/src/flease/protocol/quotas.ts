import { getOrInsert } from "../../common/maps.js";
import { nodeIdOf } from "./ballot.js";

/**
 * Shares of what one acceptor keeps.
 *
 * A lease cannot be revoked, so space must be left for later participants while there is some. Shares have
 * dynamic thresholds, like those by which switches share a buffer (Choudhury and Hahne, 1998): a large
 * participant may take one more only while it has less than `eagerness` times the free space. So a single
 * participant gets nearly all, n get equal parts, and the next still finds some. The last part is reserved
 * for participants that have little; each is guaranteed a minimum.
 *
 * There are two levels. An *account* is the authenticated identity of a connection's other side, or else its
 * address. Within an account there are *names*, which are unverified. All names of an account share its
 * quota.
 */

/**
 * A participant may have this many times the free space. Alone it ends up with 7/8 of the pool; each of two
 * accounts with 7/15 (both levels together).
 */
const eagerness = 8;

/** Whether a participant that uses `used` may take more while `free` is free. */
export function leavesRoom(used: number, free: number): boolean {
  return used < eagerness * free;
}

/** The reserved part, for participants that have little. */
const reservedPart = 1 / 10;

/**
 * The guaranteed minimum of an account, and of a name, as a share of the whole: the reserve suffices for 100
 * accounts.
 */
const accountPart = 1 / 1_000;
const namePart = 1 / 10_000;

/**
 * The unit of charging, in bytes: a resource with a name of at most 40 bytes takes one such block, the
 * longest names take five.
 */
const blockBytes = 150;

/** Measured memory of a resource without its name, bytes. */
const entryBytes = 110;

/** The charge for a resource whose name has this many UTF-8 bytes. */
export function weightOf(nameBytes: number): number {
  return Math.ceil((entryBytes + nameBytes) / blockBytes);
}

/** One name of one account, and how much is kept for it. */
export interface Payer {
  /** Payer number, from 1. It is not reused while anything is charged to this payer. */
  readonly number: number;
  readonly account: Account;
  readonly name: string;
  used: number;
  /** Connections under this name. */
  links: number;
}

interface Account {
  readonly key: string;
  used: number;
  /** The sum of its names' usage, counting each up to its guaranteed minimum. */
  certain: number;
  readonly names: Map<string, Payer>;
}

/** The payers by number; 0 means nobody. */
export interface Kept {
  payer: number;
}

/** Owners without a known connection share this account. */
const unknownAccount = "";

export class Quotas {
  #max = 0;
  #pool = 0;
  #accountLeast = 0;
  #nameLeast = 0;
  readonly #accounts = new Map<string, Account>();
  /**
   * Connected participants, keyed by the owner name in their requests. One key may have several connections
   * (a client, an observer), even from several addresses. The first one that is still open pays.
   */
  readonly #byOwner = new Map<string, Payer[]>();
  /** By number; 0 means nobody. */
  readonly #payers: (Payer | undefined)[] = [undefined];
  readonly #freeNumbers: number[] = [];
  #used = 0;
  /** The largest payer when somebody was last charged. */
  #greatest: Payer | undefined;

  constructor(max: number) {
    this.resize(max);
  }

  /**
   * Sets the capacity. Nothing is evicted: after a reduction nobody gets more until enough has been freed.
   */
  resize(max: number): void {
    this.#max = max;
    this.#pool = max - Math.floor(max * reservedPart);
    this.#accountLeast = Math.max(1, Math.floor(max * accountPart));
    this.#nameLeast = Math.max(1, Math.floor(max * namePart));
    // Each account's guaranteed part depends on the minimum of a name.
    for (const account of this.#accounts.values()) {
      account.certain = 0;
      for (const { used } of account.names.values()) account.certain += Math.min(used, this.#nameLeast);
    }
  }

  get used(): number {
    return this.#used;
  }

  /** Adds a connection of this owner, whose requests this account pays for. */
  introduce(owner: string, account: string): void {
    const payer = this.#payer(account, nodeIdOf(owner));
    payer.links += 1;
    getOrInsert(this.#byOwner, owner, () => []).push(payer);
  }

  /** Removes a connection. Entries of its owner stay, charged to it, until they are discarded. */
  gone(owner: string, account: string): void {
    const payers = this.#byOwner.get(owner) ?? [];
    const at = payers.findIndex((payer) => payer.account.key === account);
    if (at === -1) return;
    const [payer] = payers.splice(at, 1);
    if (payers.length === 0) this.#byOwner.delete(owner);
    payer!.links -= 1;
    this.#prune(payer!);
  }

  /** Removes all connections. */
  everybodyGone(): void {
    for (const [owner, payers] of this.#byOwner)
      while (payers.length > 0) this.gone(owner, payers[0]!.account.key);
  }

  payerOf(owner: string): Payer {
    return this.#byOwner.get(owner)?.[0] ?? this.#payer(unknownAccount, nodeIdOf(owner));
  }

  /** The account that pays for an entry; `undefined`: none. */
  payerOfKept({ payer }: Kept): Payer | undefined {
    return this.#payers[payer];
  }

  /**
   * Whether a resource may be kept for an owner. An entry that it already has is always allowed, so that it
   * can always renew.
   */
  mayKeep(kept: Kept | undefined, owner: string, nameBytes: number): boolean {
    const payer = this.payerOf(owner);
    return kept?.payer === payer.number || this.allows(payer, kept === undefined ? weightOf(nameBytes) : 0);
  }

  /** Charges the resource to this owner from now on. */
  keep(kept: Kept, owner: string, nameBytes: number): void {
    const payer = this.payerOf(owner);
    if (payer.number === kept.payer) return;
    this.forget(kept, nameBytes);
    this.charge(payer, weightOf(nameBytes));
    kept.payer = payer.number;
  }

  forget(kept: Kept, nameBytes: number): void {
    const payer = this.payerOfKept(kept);
    if (payer !== undefined) this.charge(payer, -weightOf(nameBytes));
    kept.payer = 0;
  }

  /** Whether this much more may be charged to it. */
  allows(payer: Payer, weight: number): boolean {
    if (this.#used + weight > this.#max) return false;
    const { account } = payer;
    if (payer.used < this.#nameLeast && account.certain < this.#accountLeast) return true;
    const free = this.#pool - this.#used;
    return leavesRoom(account.used, free) && leavesRoom(payer.used, eagerness * free - account.used);
  }

  /** Charges an amount; a negative one is a refund. */
  charge(payer: Payer, weight: number): void {
    const { account } = payer;
    const certain = Math.min(payer.used, this.#nameLeast);
    payer.used += weight;
    account.used += weight;
    account.certain += Math.min(payer.used, this.#nameLeast) - certain;
    this.#used += weight;
    if (weight < 0) this.#prune(payer);
    else if (payer.used > (this.#greatest?.used ?? 0)) this.#greatest = payer;
  }

  /** For display: the name with the most kept, now or a while ago. It has at least the mean. */
  greatest(): string {
    let count = 0;
    for (const { names } of this.#accounts.values()) count += names.size;
    // With less than the mean it cannot be the largest any longer.
    if ((this.#greatest?.used ?? 0) * count < this.#used) this.#findGreatest();
    return this.#greatest?.name ?? "";
  }

  #findGreatest(): void {
    this.#greatest = undefined;
    for (const { names } of this.#accounts.values())
      for (const payer of names.values())
        if (payer.used > (this.#greatest?.used ?? 0)) this.#greatest = payer;
  }

  #payer(key: string, name: string): Payer {
    const account = getOrInsert(this.#accounts, key, () => ({
      key,
      used: 0,
      certain: 0,
      names: new Map<string, Payer>(),
    }));
    return getOrInsert(account.names, name, () => {
      const number = this.#freeNumbers.pop() ?? this.#payers.length;
      const payer = { number, account, name, used: 0, links: 0 };
      this.#payers[number] = payer;
      return payer;
    });
  }

  #prune(payer: Payer): void {
    const { number, account, name, used, links } = payer;
    if (used > 0 || links > 0) return;
    this.#payers[number] = undefined;
    this.#freeNumbers.push(number);
    account.names.delete(name);
    if (account.names.size === 0) this.#accounts.delete(account.key);
  }
}
