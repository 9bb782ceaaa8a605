import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { FairShares } from "../../../common/fair-shares.js";
import { CoreError } from "../../state/errors.js";
import { isBcrypt, isRightByBcrypt } from "./bcrypt.js";

/**
 * Some tens of milliseconds and 16 MiB for each password, as etcd's default. They stand in each secret, so
 * that others can be chosen later.
 */
const costDefault = { N: 2 ** 14, r: 8, p: 1 };
const saltBytes = 16;
const hashBytes = 32;
/** What is written with a secret must not make a server use more than this. */
const memoryMax = 256 * 1024 * 1024;

/**
 * Passwords that wait for their turn: it takes some seconds to look at so many. Clients share the room, so
 * that one who guesses keeps nobody else out.
 */
const waitingMax = 64;

type Cost = typeof costDefault;

/**
 * Makes secrets of passwords, and tells by a secret whether a password is right (scrypt, RFC 7914, by Node's
 * own library). This is done in another thread, one password at a time: the others of Node's pool are there
 * for the disk.
 */
export class Passwords {
  readonly #shares = new FairShares<string>(waitingMax);
  #last: Promise<unknown> = Promise.resolve();

  /** @throws CoreError `tooManyRequests` */
  async secretOf(password: string, client: string): Promise<Uint8Array> {
    const salt = randomBytes(saltBytes);
    const hash = await this.#hash(password, salt, costDefault, client);
    return new TextEncoder().encode(written(costDefault, salt, hash));
  }

  /**
   * Also of users who came from an etcd, with the package bcryptjs.
   *
   * @throws CoreError `tooManyRequests`
   * @throws LeaseholdError `UNSUPPORTED`
   */
  async isRight(password: string, secret: Uint8Array, client: string): Promise<boolean> {
    const text = new TextDecoder().decode(secret);
    if (isBcrypt(text)) return this.#inTurn(client, () => isRightByBcrypt(password, text));
    const { cost, hash, salt } = read(text);
    return timingSafeEqual(await this.#hash(password, salt, cost, client), hash);
  }

  /** Takes as long as to look at a password: how long an answer takes does not tell which users there are. */
  async waste(password: string, client: string): Promise<void> {
    await this.#hash(password, Buffer.alloc(saltBytes), costDefault, client);
  }

  #hash(password: string, salt: Buffer, cost: Cost, client: string): Promise<Buffer> {
    return this.#inTurn(client, () => hashOf(password, salt, cost));
  }

  async #inTurn<Result>(client: string, compute: () => Promise<Result>): Promise<Result> {
    if (!this.#shares.take(client, 1)) throw new CoreError("tooManyRequests");
    const result = this.#last.then(compute);
    this.#last = result.catch(() => undefined);
    try {
      return await result;
    } finally {
      this.#shares.giveBack(client, 1);
    }
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
  if (hash === undefined) throw new TypeError("a user's secret is of a kind that this version does not know");
  return {
    cost: { N: Number(N), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt!, "base64url"),
    hash: Buffer.from(hash, "base64url"),
  };
}
