import { randomUUID } from "node:crypto";
import { Refusal } from "./refusal.js";
import type { HeldLock, LockGround, LockMark } from "./tree.js";

/** The most locks that one node holds at a time. The locks of one path share a lease, which is renewed. */
const locksMax = 1_000;

export interface LockWish {
  readonly path: string;
  /** The owner as described by the client, in XML. */
  readonly owner: string;
  /** The lock covers everything in the folder. */
  readonly isDeep: boolean;
  /** Others may have shared locks on the same path. */
  readonly isShared: boolean;
}

export interface Lock extends LockWish {
  readonly token: string;
  endsMs: number;
}

interface Kept extends Lock {
  timer: NodeJS.Timeout | undefined;
}

/** The locks of a path at this node: a single exclusive lock, or shared ones of the same depth. */
interface Group {
  readonly path: string;
  readonly mark: LockMark;
  readonly held: HeldLock;
  readonly locks: Map<string, Kept>;
}

/** A path changed by a request. */
export interface Touched {
  readonly path: string;
  /** Everything below the path changes too. */
  readonly isDeep: boolean;
  /** The path is added to its folder or removed from it. A lock of the folder alone forbids that too. */
  readonly isMember: boolean | Promise<boolean>;
}

/**
 * Locks with a timeout. The locks of one path at one node rest on a lease, so that no other node grants any.
 * Shared locks of a path are therefore granted by one node at a time. Leases for several readers would take
 * 17 lookups for each folder above a file that is written, and hardly any client uses shared locks.
 */
export class Locks {
  readonly #ground: LockGround;
  readonly #byPath = new Map<string, Group>();

  constructor(ground: LockGround) {
    this.#ground = ground;
  }

  /** The locks of this node that cover the path. */
  over(path: string): Lock[] {
    return above(path).flatMap((each) => {
      const group = this.#byPath.get(each);
      return group !== undefined && reaches(group.mark, each, path) ? [...group.locks.values()] : [];
    });
  }

  /** @throws Refusal 423 if there is a lock that would overlap with this one, unless both are shared */
  async take(wish: LockWish, seconds: number): Promise<Lock> {
    await this.#mustBeGrantable(wish, false);
    const count = [...this.#byPath.values()].reduce((sum, { locks }) => sum + locks.size, 0);
    if (count >= locksMax) throw new Refusal(503, "this node has reached its limit of locks");
    const lock = await this.#add(wish, seconds);
    try {
      // When two nodes lock a folder and something in it, at least one of them sees the other's lease here.
      await this.#mustBeGrantable(wish, true);
      return lock;
    } catch (error) {
      await this.#end(lock);
      throw error;
    }
  }

  async #add(wish: LockWish, seconds: number): Promise<Kept> {
    const { path, isDeep, isShared } = wish;
    const uuid = `urn:uuid:${randomUUID()}`;
    const mark = { token: isShared ? uuid.slice(0, -12) : uuid, isDeep, isShared };
    let group = this.#byPath.get(path);
    if (group === undefined) {
      const held = await this.#ground.take(path, mark);
      // Another request of this node, or another node, has locked the path meanwhile.
      if (held === undefined) throw conflicting(path);
      const taken: Group = { path, mark, held, locks: new Map() };
      this.#byPath.set(path, taken);
      held.lost.addEventListener("abort", () => void this.#endAll([taken]), { once: true });
      group = taken;
    } else if (!mayJoin(wish, group.mark)) throw conflicting(path);
    const token = isShared ? group.mark.token + uuid.slice(-12) : group.mark.token;
    const lock: Kept = { ...wish, token, endsMs: 0, timer: undefined };
    group.locks.set(token, lock);
    this.#prolong(lock, seconds);
    return lock;
  }

  /** @throws Refusal 412 if this node does not hold the lock */
  refresh(path: string, tokens: ReadonlySet<string>, seconds: number): Lock {
    const lock = this.#find(path, (token) => tokens.has(token));
    if (lock === undefined) throw new Refusal(412, "no such lock", "lock-token-matches-request-uri");
    this.#prolong(lock, seconds);
    return lock;
  }

  /** @throws Refusal 409 if this node does not hold the lock */
  async release(path: string, token: string): Promise<void> {
    const lock = this.#find(path, (each) => each === token);
    if (lock === undefined) throw new Refusal(409, "no such lock", "lock-token-matches-request-uri");
    await this.#end(lock);
  }

  /**
   * @param tokens the lock tokens in the request. For shared locks one is enough.
   * @throws Refusal 423 for a lock whose token is not among them
   */
  async mustBeFree(all: readonly Touched[], tokens: ReadonlySet<string>): Promise<void> {
    for (const touched of all)
      for await (const [at, marks] of this.#around(touched.path, touched.isDeep))
        if ((await isTouched(touched, at, marks.mark)) && !marks.isAmong(tokens))
          throw new Refusal(423, `/${at} is locked`, "lock-token-submitted");
  }

  /** Whether that lock, at any node, covers the path. */
  async isHeld(path: string, token: string): Promise<boolean> {
    const tokens = new Set([token]);
    for await (const [at, { mark, isAmong }] of this.#around(path, false))
      if (reaches(mark, at, path) && isAmong(tokens)) return true;
    return false;
  }

  /** The locked resource is gone, and so are its locks. */
  async forget(path: string): Promise<void> {
    const gone = [...this.#byPath.values()].filter((group) => isWithinOrAt(path, group.path));
    await this.#endAll(gone);
  }

  close(): Promise<void> {
    return this.#endAll([...this.#byPath.values()]);
  }

  /** @param isTaken whether this node already has the lease of the path */
  async #mustBeGrantable(wish: LockWish, isTaken: boolean): Promise<void> {
    const { path, isDeep, isShared } = wish;
    for await (const [at, { mark, isHere }] of this.#around(path, isDeep)) {
      if (at === path) {
        if (!isTaken && !(isHere && mayJoin(wish, mark))) throw conflicting(at);
      } else if ((reaches(mark, at, path) || isWithin(path, at)) && !(isShared && mark.isShared))
        throw conflicting(at);
    }
  }

  /**
   * All locks of a path, of the folders above it and of everything below it. Locks of other nodes come last.
   */
  async *#around(path: string, withBelow: boolean): AsyncGenerator<readonly [string, Found]> {
    for (const group of this.#byPath.values()) {
      const { path: at, mark, locks } = group;
      const isAmong = (tokens: ReadonlySet<string>) => [...locks.keys()].some((token) => tokens.has(token));
      if (isWithinOrAt(at, path) || (withBelow && isWithin(path, at)))
        yield [at, { mark, isAmong, isHere: true }];
    }
    const others = above(path).filter((each) => !this.#byPath.has(each));
    const found = await Promise.all(
      others.map(async (each) => [each, await this.#ground.markOf(each)] as const),
    );
    const below = withBelow ? await this.#ground.marksBelow(path) : [];
    for (const [at, mark] of [...found, ...below])
      if (mark !== undefined && !this.#byPath.has(at))
        yield [at, { mark, isAmong: (tokens) => isTokenOf(mark, tokens), isHere: false }];
  }

  #find(path: string, isWanted: (token: string) => boolean): Kept | undefined {
    return above(path)
      .flatMap((each) => [...(this.#byPath.get(each)?.locks.values() ?? [])])
      .find(({ token }) => isWanted(token));
  }

  #prolong(lock: Kept, seconds: number): void {
    clearTimeout(lock.timer);
    lock.endsMs = Date.now() + seconds * 1_000;
    lock.timer = setTimeout(() => void this.#end(lock), seconds * 1_000).unref();
  }

  async #endAll(groups: readonly Group[]): Promise<void> {
    const locks = groups.flatMap((group) => [...group.locks.values()]);
    await Promise.all(locks.map((lock) => this.#end(lock)));
  }

  async #end(lock: Kept): Promise<void> {
    clearTimeout(lock.timer);
    const group = this.#byPath.get(lock.path);
    if (group?.locks.get(lock.token) !== lock) return;
    group.locks.delete(lock.token);
    if (group.locks.size > 0) return;
    this.#byPath.delete(lock.path);
    // A lease that cannot be released will expire.
    await group.held.release().catch(() => undefined);
  }
}

/** The locks of one path. */
interface Found {
  readonly mark: LockMark;
  readonly isAmong: (tokens: ReadonlySet<string>) => boolean;
  readonly isHere: boolean;
}

/**
 * Other nodes know only the common beginning of the tokens of shared locks. That is enough: while one of the
 * locks is held no exclusive lock can be granted, and any of the tokens proves no more than that.
 */
function isTokenOf({ token, isShared }: LockMark, tokens: ReadonlySet<string>): boolean {
  return isShared ? [...tokens].some((each) => each.startsWith(token)) : tokens.has(token);
}

function mayJoin({ isDeep, isShared }: LockWish, mark: LockMark): boolean {
  return isShared && mark.isShared && mark.isDeep === isDeep;
}

function reaches({ isDeep }: LockMark, at: string, path: string): boolean {
  return at === path || (isDeep && isWithin(at, path));
}

async function isTouched({ path, isDeep, isMember }: Touched, at: string, mark: LockMark): Promise<boolean> {
  if (reaches(mark, at, path) || (isDeep && isWithin(path, at))) return true;
  return at === folderOf(path) && (await isMember);
}

function conflicting(path: string): Refusal {
  return new Refusal(423, `/${path} is locked`, "no-conflicting-lock");
}

export function isWithin(folder: string, path: string): boolean {
  return folder === "" ? path !== "" : path.startsWith(`${folder}/`);
}

const isWithinOrAt = (folder: string, path: string): boolean => folder === path || isWithin(folder, path);

export const folderOf = (path: string): string => path.split("/").slice(0, -1).join("/");

/** The path and the folders above it, up to the root. */
function above(path: string): string[] {
  const parts = path === "" ? [] : path.split("/");
  return Array.from({ length: parts.length + 1 }, (_, index) =>
    parts.slice(0, parts.length - index).join("/"),
  );
}
