import { getOrInsert } from "../../common/maps.js";
import { nodeIdOf } from "./ballot.js";

/**
 * Shares of what one acceptor keeps.
 *
 * A lease cannot be revoked, so room for later participants must be left while there is some: dynamic
 * thresholds, as switches share a buffer (Choudhury and Hahne, 1998). A participant that has much may take
 * one more only as long as it has less than `eagerness` times what is free. So one alone gets nearly all, n
 * get equal parts, and the next finds something. The last part is reserved for participants that have little,
 * each of which gets a minimum.
 *
 * There are two levels. An *account* is what the other side of a connection has proven, or else its address.
 * Within an account there are *names*, which are unverified. Many names of one account share what the account
 * may have.
 */

/**
 * A participant may have this many times what is free: alone it ends up with 7/8 of the pool, one of two
 * accounts with 7/15 (both levels together).
 */
const eagerness = 8;

/** Whether a participant that uses `used` may take more while `free` is free. */
export function leavesRoom(used: number, free: number): boolean {
  return used < eagerness * free;
}

/** The last part, reserved for participants that have little. */
const reservedPart = 1 / 10;

/** The minimum of an account, and of a name, as a share of all: the last part suffices for 100 accounts. */
const accountPart = 1 / 1_000;
const namePart = 1 / 10_000;

/** A resource with a name of at most 40 bytes takes one such block, in bytes; the longest take five. */
const blockBytes = 150;

/** Measured memory of a resource without its name. */
const entryBytes = 110;

/** The charge for a resource with a name of this many bytes of UTF-8. */
export function weightOf(nameBytes: number): number {
  return Math.ceil((entryBytes + nameBytes) / blockBytes);
}

/** One name of one account, and what is kept for it. */
export interface Payer {
  /** From 1 on. No other payer gets the number while anything is charged to this one. */
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
  /** The part that its names use of what each may have for certain. */
  certain: number;
  readonly names: Map<string, Payer>;
}

/** The charges, by the payer's number; 0: nobody. */
export interface Kept {
  payer: number;
}

/** Owners that nobody has introduced have this account together. */
const unknownAccount = "";

export class Quotas {
  #max = 0;
  #pool = 0;
  #accountLeast = 0;
  #nameLeast = 0;
  readonly #accounts = new Map<string, Account>();
  /**
   * Connected participants, by the owner of their requests. One key may have several connections (a client,
   * an observer), even from several addresses: the first one that is still open pays.
   */
  readonly #byOwner = new Map<string, Payer[]>();
  /** By their numbers; 0 is nobody's. */
  readonly #payers: (Payer | undefined)[] = [undefined];
  readonly #freeNumbers: number[] = [];
  #used = 0;
  /** The payer that had the most when somebody was last charged. */
  #greatest: Payer | undefined;

  constructor(max: number) {
    this.resize(max);
  }

  /**
   * From now on this much may be kept. What is kept stays: with less than that, nobody gets more before
   * enough has gone.
   */
  resize(max: number): void {
    this.#max = max;
    this.#pool = max - Math.floor(max * reservedPart);
    this.#accountLeast = Math.max(1, Math.floor(max * accountPart));
    this.#nameLeast = Math.max(1, Math.floor(max * namePart));
    // Each account's certain part depends on the least part of a name.
    for (const account of this.#accounts.values()) {
      account.certain = 0;
      for (const { used } of account.names.values()) account.certain += Math.min(used, this.#nameLeast);
    }
  }

  get used(): number {
    return this.#used;
  }

  /** A connection of this owner, whose requests this account pays for. */
  introduce(owner: string, account: string): void {
    const payer = this.#payer(account, nodeIdOf(owner));
    payer.links += 1;
    getOrInsert(this.#byOwner, owner, () => []).push(payer);
  }

  /** That connection is over. What its owner has is kept, and charged to it, until it goes. */
  gone(owner: string, account: string): void {
    const payers = this.#byOwner.get(owner) ?? [];
    const at = payers.findIndex((payer) => payer.account.key === account);
    if (at === -1) return;
    const [payer] = payers.splice(at, 1);
    if (payers.length === 0) this.#byOwner.delete(owner);
    payer!.links -= 1;
    this.#prune(payer!);
  }

  /** Nobody is connected any more. */
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
   * Whether a resource may be kept for an owner. An entry that it already has is always allowed: it can
   * always renew.
   */
  mayKeep(kept: Kept | undefined, owner: string, nameBytes: number): boolean {
    const payer = this.payerOf(owner);
    return kept?.payer === payer.number || this.allows(payer, kept === undefined ? weightOf(nameBytes) : 0);
  }

  /** From now on the resource is kept for this owner. */
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

  /** A negative amount is a refund. */
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

  /**
   * For people: the name for which the most is kept, or was a while ago. It has no less than the mean.
   */
  greatest(): string {
    let count = 0;
    for (const { names } of this.#accounts.values()) count += names.size;
    // With less than the mean it cannot be the one any more.
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
