import { createHmac, randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { LeaseholdError } from "leasehold/common";
import { type EventLog, FileWatch, type Logger, realWorld, silent, watchMs } from "leasehold/runtime";
import { eventLog, type LogEvents } from "../logs/log-events.js";
import { hashOf, isPassword, parseHash, passwordBytesMax, type PasswordHash } from "./password.js";
import { parseUsers, type User } from "./users-file.js";

/** The limit of the file's size, checked before the file is read. */
const fileBytesMax = 2 ** 20;
/**
 * The most passwords that wait to be checked. A check keeps a processor busy for about 100 ms, and only one
 * runs at a time.
 */
export const waitingMax = 32;
/** The most that wait for one name, so that guesses at one password do not delay all other users. */
export const waitingOfNameMax = 4;
/** The most credentials known to be right. A request with one of them need not wait for a check. */
export const rightMax = 1_000;

export interface UsersOptions {
  /** Receives the reason why a changed file is not used. */
  readonly fault?: ((text: string) => void) | undefined;
  readonly everyMs?: number | undefined;
  /** Called when the file has been read again, with the users that have changed. Default: none. */
  readonly logger?: Logger | undefined;
}

/**
 * Reads the users from a file, and reads the file again within 5 s of a change. `leasehold files user` prints
 * lines for it.
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function openUsers(path: string, options?: UsersOptions): Promise<Users> {
  return Users.open(path, options);
}

/** Users and their rights ({@link openUsers}). */
export class Users {
  readonly #watch: FileWatch<ReadonlyMap<string, User>>;
  /** The hash compared for unknown names, so that the answer takes as long as for known ones. */
  readonly #nobody: PasswordHash;
  readonly #key = randomBytes(32);
  readonly #right = new Map<string, User>();
  readonly #waiting = new Map<string, number>();
  #waits = 0;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(watch: FileWatch<ReadonlyMap<string, User>>, nobody: PasswordHash) {
    this.#watch = watch;
    this.#nobody = nobody;
  }

  /** @throws LeaseholdError `INVALID_CONFIG` */
  static async open(path: string, options: UsersOptions = {}): Promise<Users> {
    const { fault = () => undefined, everyMs = watchMs } = options;
    const { logger = { ...silent, warn: fault } } = options;
    const events = eventLog(options.logger);
    let before: ReadonlyMap<string, User> | undefined;
    const read = async () => {
      const users = new Map(await usersIn(path));
      // An unchanged user stays the same object, so its password is not checked again.
      for (const [name, user] of users)
        if (isSame(before?.get(name), user)) users.set(name, before!.get(name)!);
      if (before !== undefined) auditUsers(events, path, before, users);
      before = users;
      return users;
    };
    const watch = await FileWatch.start({ paths: [path], read, world: realWorld(), logger, everyMs });
    return new Users(watch, parseHash(await hashOf(randomBytes(16).toString("hex")))!);
  }

  /** The user that currently has that name. */
  named(name: string): User | undefined {
    return this.#watch.current.get(name);
  }

  /**
   * The user with that name and password; undefined if there is none.
   * @throws LeaseholdError `OVERLOADED` while too many passwords wait to be checked
   */
  async authenticate(name: string, password: string): Promise<User | undefined> {
    if (Buffer.byteLength(password) > passwordBytesMax) return undefined;
    const key = createHmac("sha256", this.#key).update(`${name}\0${password}`).digest("base64");
    const known = this.#right.get(key);
    if (known !== undefined) {
      // The file may have changed during the check.
      if (this.named(name) === known) return known;
      this.#right.delete(key);
    }
    const user = this.named(name);
    const isRight = await this.#inTurn(name, () => isPassword(password, user?.hash ?? this.#nobody));
    if (!isRight || user === undefined || this.named(name) !== user) return undefined;
    if (this.#right.size >= rightMax) this.#right.delete(this.#right.keys().next().value!);
    this.#right.set(key, user);
    return user;
  }

  close(): void {
    this.#watch.close();
  }

  async #inTurn(name: string, check: () => Promise<boolean>): Promise<boolean> {
    const ofName = this.#waiting.get(name) ?? 0;
    if (this.#waits >= waitingMax || ofName >= waitingOfNameMax)
      throw new LeaseholdError("OVERLOADED", "too many passwords wait for their check");
    this.#waits += 1;
    this.#waiting.set(name, ofName + 1);
    const turn = this.#last.then(check);
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#waits -= 1;
      const left = this.#waiting.get(name)! - 1;
      if (left > 0) this.#waiting.set(name, left);
      else this.#waiting.delete(name);
    }
  }
}

function auditUsers(
  events: EventLog<LogEvents>,
  file: string,
  before: ReadonlyMap<string, User>,
  users: ReadonlyMap<string, User>,
): void {
  const names = [...new Set([...before.keys(), ...users.keys()])];
  const changed = names.filter((name) => before.get(name) !== users.get(name));
  if (changed.length === 0) return;
  const subject = changed.join(", ");
  events.log("users-changed", `${file} has changed: ${subject}`, { file, subject });
}

function isSame(one: User | undefined, other: User): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

async function usersIn(path: string): Promise<ReadonlyMap<string, User>> {
  try {
    const { size } = await stat(path);
    if (size > fileBytesMax) throw new Error(`it has more than ${fileBytesMax} bytes`);
    return parseUsers(await readFile(path, "utf8"));
  } catch (cause) {
    throw new LeaseholdError("INVALID_CONFIG", `${path}: ${(cause as Error).message}`, { cause });
  }
}
