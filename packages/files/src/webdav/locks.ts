import { randomUUID } from "node:crypto";
import { Refusal } from "./refusal.js";
import type { HeldLock, LockGround } from "./tree.js";

/** Locks that one node holds at once; each renews a lease. */
const locksMax = 1_000;

export interface Lock {
  readonly path: string;
  readonly token: string;
  /** The owner as the client described it, as XML. */
  readonly owner: string;
  /** The lock includes everything in the folder. */
  readonly deep: boolean;
  endsMs: number;
}

interface Kept extends Lock {
  readonly held: HeldLock;
  timer: NodeJS.Timeout | undefined;
}

/** Exclusive locks with a timeout. Each is a lease, so that no other node grants the same. */
export class Locks {
  readonly #ground: LockGround;
  readonly #byPath = new Map<string, Kept>();

  constructor(ground: LockGround) {
    this.#ground = ground;
  }

  /** The lock of this node on the path itself. */
  at(path: string): Lock | undefined {
    return this.#byPath.get(path);
  }

  /**
   * @throws Refusal 423 while the path, a folder above it, or for a deep lock anything below it, is locked
   */
  async take(path: string, owner: string, deep: boolean, seconds: number): Promise<Lock> {
    await this.mustBeFree([path], new Set(), deep);
    if (this.#byPath.size >= locksMax) throw new Refusal(503, "this node has reached its limit of locks");
    const token = `urn:uuid:${randomUUID()}`;
    const held = await this.#ground.take(path, token);
    if (held === undefined) throw locked(path);
    const lock: Kept = { path, token, owner, deep, endsMs: 0, held, timer: undefined };
    this.#byPath.set(path, lock);
    held.lost.addEventListener("abort", () => void this.#end(lock), { once: true });
    this.#prolong(lock, seconds);
    return lock;
  }

  /** @throws Refusal 412 if this node does not hold it */
  refresh(path: string, tokens: ReadonlySet<string>, seconds: number): Lock {
    const lock = above(path)
      .map((each) => this.#byPath.get(each))
      .find((each) => each !== undefined && tokens.has(each.token));
    if (lock === undefined) throw new Refusal(412, "no such lock", "lock-token-matches-request-uri");
    this.#prolong(lock, seconds);
    return lock;
  }

  /** @throws Refusal 409 if this node does not hold it */
  async release(path: string, token: string): Promise<void> {
    const lock = above(path)
      .map((each) => this.#byPath.get(each))
      .find((each) => each?.token === token);
    if (lock === undefined) throw new Refusal(409, "no such lock", "lock-token-matches-request-uri");
    await this.#end(lock);
  }

  /**
   * @param tokens the lock tokens in the request.
   * @param deep everything below these paths must be unlocked, too.
   * @throws Refusal 423 for a lock whose token is not among them
   */
  async mustBeFree(paths: readonly string[], tokens: ReadonlySet<string>, deep: boolean): Promise<void> {
    for (const path of paths) {
      const inside = (lock: Lock): boolean => deep && isWithin(path, lock.path);
      for (const lock of this.#byPath.values()) {
        const reaches = lock.path === path || (lock.deep && isWithin(lock.path, path));
        if ((reaches || inside(lock)) && !tokens.has(lock.token)) throw locked(lock.path);
      }
      // Other nodes' locks on this path and the folders above it.
      const others = above(path).filter((each) => !this.#byPath.has(each));
      const found = await Promise.all(others.map((each) => this.#ground.tokenOf(each)));
      const index = found.findIndex((token) => token !== undefined && !tokens.has(token));
      if (index >= 0) throw locked(others[index]!);
    }
  }

  /** Whether that lock is on the path or a folder above it, at any node. */
  async isHeld(path: string, token: string): Promise<boolean> {
    if (above(path).some((each) => this.#byPath.get(each)?.token === token)) return true;
    const found = await Promise.all(above(path).map((each) => this.#ground.tokenOf(each)));
    return found.includes(token);
  }

  /** The locked resource is gone, and its locks with it. */
  async forget(path: string): Promise<void> {
    const gone = [...this.#byPath.values()].filter((lock) => lock.path === path || isWithin(path, lock.path));
    await Promise.all(gone.map((lock) => this.#end(lock)));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#byPath.values()].map((lock) => this.#end(lock)));
  }

  #prolong(lock: Kept, seconds: number): void {
    clearTimeout(lock.timer);
    lock.endsMs = Date.now() + seconds * 1_000;
    lock.timer = setTimeout(() => void this.#end(lock), seconds * 1_000).unref();
  }

  async #end(lock: Kept): Promise<void> {
    if (this.#byPath.get(lock.path) !== lock) return;
    this.#byPath.delete(lock.path);
    clearTimeout(lock.timer);
    // A lease that cannot be released expires.
    await lock.held.release().catch(() => undefined);
  }
}

function locked(path: string): Refusal {
  return new Refusal(423, `/${path} is locked`, "lock-token-submitted");
}

export function isWithin(folder: string, path: string): boolean {
  return folder === "" ? path !== "" : path.startsWith(`${folder}/`);
}

/** The path and the folders above it, up to the root. */
function above(path: string): string[] {
  const parts = path === "" ? [] : path.split("/");
  return Array.from({ length: parts.length + 1 }, (_, index) =>
    parts.slice(0, parts.length - index).join("/"),
  );
}
