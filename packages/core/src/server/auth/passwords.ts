import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { LeaseholdError, Room } from "leasehold/common";
import { tooManyRequests } from "../../state/errors.js";
import { hostOf } from "../accounts/address-of.js";
import { isBcrypt, isRightByBcrypt } from "./bcrypt.js";

/**
 * Takes some tens of milliseconds and 16 MiB per password, as etcd's default does. Each secret contains its
 * costs, so that others can be chosen later.
 */
const costDefault = { N: 2 ** 14, r: 8, p: 1 };
const saltBytes = 16;
const hashBytes = 32;
/** A stored secret must not make a server use more memory than this, … */
const memoryMax = 256 * 1024 * 1024;
/** … or do more work than for this many passwords. */
const workMax = 8;

/**
 * Bound of queued passwords: checking this many takes some seconds. Hosts share the room and take turns, so a
 * host that guesses passwords delays no other.
 */
const waitingMaxDefault = 128;

type Cost = typeof costDefault;

/**
 * Hashes passwords, and verifies them (scrypt, RFC 7914, by Node's own library). This runs in Node's thread
 * pool, one password at a time: the other threads are for the disk.
 */
export class Passwords {
  readonly #room: Room;
  /** Queues by host. The first host is next. */
  readonly #waiting = new Map<string, (() => Promise<void>)[]>();
  #isBusy = false;

  constructor(waitingMax = waitingMaxDefault) {
    this.#room = new Room(waitingMax, tooManyRequests);
  }

  /** @throws CoreError `tooManyRequests` */
  async secretOf(password: string, client: string): Promise<Uint8Array> {
    const salt = randomBytes(saltBytes);
    const hash = await this.#hash(password, salt, costDefault, client);
    return new TextEncoder().encode(written(costDefault, salt, hash));
  }

  /**
   * Whether the password is right. Never for an empty secret, whose check takes as long. Also checks secrets
   * from etcd.
   *
   * @throws CoreError `tooManyRequests`
   * @throws LeaseholdError `UNSUPPORTED` for a secret from etcd that takes too much work
   */
  async isRight(password: string, secret: Uint8Array, client: string): Promise<boolean> {
    if (secret.length === 0) {
      await this.#hash(password, Buffer.alloc(saltBytes), costDefault, client);
      return false;
    }
    const text = new TextDecoder().decode(secret);
    if (isBcrypt(text)) return this.#inTurn(client, () => isRightByBcrypt(password, text));
    const { cost, hash, salt } = read(text);
    return timingSafeEqual(await this.#hash(password, salt, cost, client), hash);
  }

  #hash(password: string, salt: Buffer, cost: Cost, client: string): Promise<Buffer> {
    return this.#inTurn(client, () => hashOf(password, salt, cost));
  }

  async #inTurn<Result>(client: string, compute: () => Promise<Result>): Promise<Result> {
    const host = hostOf(client);
    this.#room.take(host, 1);
    try {
      return await new Promise<Result>((resolve, reject) => {
        const work = () => compute().then(resolve, reject);
        const before = this.#waiting.get(host);
        if (before === undefined) this.#waiting.set(host, [work]);
        else before.push(work);
        this.#next();
      });
    } finally {
      this.#room.release(host, 1);
    }
  }

  #next(): void {
    const [first] = this.#waiting;
    if (this.#isBusy || first === undefined) return;
    const [host, works] = first;
    const work = works.shift()!;
    this.#waiting.delete(host);
    if (works.length > 0) this.#waiting.set(host, works);
    this.#isBusy = true;
    void work().then(() => {
      this.#isBusy = false;
      this.#next();
    });
  }
}

function hashOf(password: string, salt: Buffer, cost: Cost): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, hashBytes, { ...cost, maxmem: memoryMax }, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    );
  });
}

function written({ N, p, r }: Cost, salt: Buffer, hash: Buffer): string {
  return `$scrypt$N=${N},r=${r},p=${p}$${salt.toString("base64url")}$${hash.toString("base64url")}`;
}

function read(text: string): { cost: Cost; salt: Buffer; hash: Buffer } {
  const [, N, r, p, salt, hash] = /^\$scrypt\$N=(\d+),r=(\d+),p=(\d+)\$([\w-]+)\$([\w-]+)$/.exec(text) ?? [];
  if (hash === undefined) throw new TypeError("a user's secret is of a kind unknown to this version");
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  const bytes = Buffer.from(hash, "base64url");
  if (bytes.length !== hashBytes || workOf(cost) > workMax * workOf(costDefault))
    throw new LeaseholdError("UNSUPPORTED", "a user's secret takes more work than allowed for one password");
  return { cost, salt: Buffer.from(salt!, "base64url"), hash: bytes };
}

function workOf({ N, p, r }: Cost): number {
  return N * r * p;
}
