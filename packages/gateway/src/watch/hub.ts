import type { Change, Leases } from "leasehold";
import { type Timer, type Timers, getOrInsert } from "leasehold/common";

/** The number of past changes that a reconnecting client can still receive one by one. */
const keptMax = 8_192;
const retryMs = 1_000;

/** A change with its position in this gateway's order. */
export interface NumberedChange {
  readonly id: string;
  readonly change: Change;
}

export interface Follower {
  /** Names with this prefix; with `isExact`, this name only. */
  readonly prefix: string;
  readonly isExact: boolean;
  /**
   * Discards earlier reports, which may be wrong. Next come all held leases, as far as they are known, and
   * then the changes after `position`.
   */
  reset(held: Iterable<NumberedChange>, position: string): void;
  report(numbered: NumberedChange): void;
}

/**
 * One watch of all leases of the ground, shared by all watching clients, open while there is at least one. A
 * client that reconnects with the id of its last change receives what it missed, or else all held leases.
 */
export class WatchHub {
  readonly #leases: Leases;
  readonly #timers: Timers;
  readonly #newId: () => string;
  readonly #followers = new Map<string, Set<Follower>>();
  #held = new Map<string, NumberedChange>();
  #kept: NumberedChange[] = [];
  /** The first part of ids. Each new watch of the ground gets a new epoch. */
  #epoch = "";
  #made = 0;
  #count = 0;
  #watch: AbortController | undefined;
  #retry: Timer | undefined;

  constructor(leases: Leases, timers: Timers, newId: () => string) {
    this.#leases = leases;
    this.#timers = timers;
    this.#newId = newId;
  }

  get followers(): number {
    return this.#count;
  }

  /** @returns a function that ends it */
  follow(follower: Follower, lastId?: string): () => void {
    getOrInsert(this.#followers, follower.prefix, () => new Set()).add(follower);
    this.#count += 1;
    if (this.#watch === undefined) this.#begin();
    const missed = lastId === undefined ? undefined : this.#after(lastId);
    if (missed === undefined) this.#reset(follower);
    else for (const numbered of missed) if (concerns(follower, numbered)) follower.report(numbered);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const same = this.#followers.get(follower.prefix);
      same?.delete(follower);
      if (same?.size === 0) this.#followers.delete(follower.prefix);
      this.#count -= 1;
      if (this.#count === 0) this.close();
    };
  }

  close(): void {
    this.#watch?.abort();
    this.#watch = undefined;
    this.#retry?.cancel();
  }

  #begin(): void {
    const watch = new AbortController();
    this.#watch = watch;
    this.#epoch = this.#newId().slice(0, 8);
    this.#held = new Map();
    this.#kept = [];
    this.#made = 0;
    this.#read(watch.signal).catch(() => this.#again(watch));
  }

  async #read(signal: AbortSignal): Promise<void> {
    for await (const change of this.#leases.watch("", { signal })) this.#take(change);
    throw new Error("the watch has ended");
  }

  #again(watch: AbortController): void {
    if (this.#watch !== watch) return;
    this.#retry = this.#timers.after(retryMs, () => {
      if (this.#watch !== watch) return;
      this.#begin();
      for (const same of this.#followers.values()) for (const follower of same) this.#reset(follower);
    });
  }

  #take(change: Change): void {
    this.#made += 1;
    const numbered = { id: this.#position(), change };
    if (change.state === "held") this.#held.set(change.resource, numbered);
    else this.#held.delete(change.resource);
    this.#kept.push(numbered);
    if (this.#kept.length >= 2 * keptMax) this.#kept = this.#kept.slice(keptMax);
    const { resource } = change;
    // Looks up each prefix of the name: a name has at most 512 characters, while thousands of clients may
    // watch.
    for (let length = 0; length <= resource.length; length += 1) {
      const same = this.#followers.get(resource.slice(0, length));
      if (same === undefined) continue;
      for (const follower of same)
        if (!follower.isExact || length === resource.length) follower.report(numbered);
    }
  }

  #reset(follower: Follower): void {
    follower.reset(heldOf(this.#held, follower), this.#position());
  }

  #position(): string {
    return `${this.#epoch}-${this.#made}`;
  }

  /** The changes after this id; `undefined` if they are no longer known. */
  #after(lastId: string): readonly NumberedChange[] | undefined {
    // An epoch may contain a `-`, too.
    const at = lastId.lastIndexOf("-");
    const [epoch, text] = [lastId.slice(0, at), lastId.slice(at + 1)];
    const last = Number(text);
    const first = this.#made - this.#kept.length;
    if (epoch !== this.#epoch || !/^\d{1,15}$/.test(text) || last < first || last > this.#made)
      return undefined;
    return this.#kept.slice(last - first);
  }
}

/** Lazy, at the follower's pace: a change in between is yielded in its latest state, or not at all. */
function* heldOf(
  held: ReadonlyMap<string, NumberedChange>,
  follower: Follower,
): Generator<NumberedChange, undefined> {
  for (const numbered of held.values()) if (concerns(follower, numbered)) yield numbered;
}

function concerns({ prefix, isExact }: Follower, { change: { resource } }: NumberedChange): boolean {
  return isExact ? resource === prefix : resource.startsWith(prefix);
}
