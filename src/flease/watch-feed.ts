import { Deadlines } from "../lease/deadlines.js";
import type { DeadlineItem } from "../lease/deadlines.js";
import type { Acceptor } from "./acceptor.js";
import type { Reading } from "./clock.js";
import { listedLease, listedMax } from "./listing.js";
import type { ListedLease } from "./listing.js";

/** One who is told nothing, while so many resources change, begins anew instead: some 20 megabytes. */
const untoldMax = 200_000;

/** The earliest that a lease which seemed to be over is looked at again. */
const lookAgainMs = 10;

/** What changed at one acceptor, as it goes over the wire as JSON. */
export interface FeedPage {
  /** Resources with an unfinished lease. */
  readonly held: readonly ListedLease[];
  /** Resources that have none any more. */
  readonly free: readonly string[];
  /** There is more to tell at once. While the first pages have more, what they tell is not everything. */
  readonly more: boolean;
}

/** A lease as the followers were last told of it. */
class Followed implements DeadlineItem {
  readonly resource: string;
  owner = "";
  token = 0;
  dueMs = 0;
  heapIndex = -1;
  heapSequence = 0;

  constructor(resource: string) {
    this.resource = resource;
  }
}

/** One who follows the changes below a prefix: what it has not been told yet, at most one entry for each resource. */
export class Follower {
  readonly prefix: string;
  readonly changed = new Set<string>();
  /** It has missed something, and must begin anew. */
  lost = false;

  constructor(prefix: string) {
    this.prefix = prefix;
  }
}

/**
 * What happens to the leases of one acceptor, for those who watch. It is beside the protocol: it looks at entries and
 * changes none. While nobody follows it costs one comparison for each request.
 */
export class WatchFeed {
  readonly #acceptor: Acceptor;
  readonly #followers = new Set<Follower>();
  readonly #followed = new Map<string, Followed>();
  readonly #deadlines = new Deadlines<Followed>();

  constructor(acceptor: Acceptor) {
    this.#acceptor = acceptor;
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0;
  }

  /** Whoever begins to follow is first told of everything that is held. */
  follow(prefix: string, now: Reading): Follower {
    const isFirst = !this.isFollowed;
    const follower = new Follower(prefix);
    this.#followers.add(follower);
    if (isFirst) for (const [resource] of this.#acceptor.entries()) this.note(resource, now);
    else
      for (const resource of this.#followed.keys())
        if (resource.startsWith(prefix)) follower.changed.add(resource);
    return follower;
  }

  unfollow(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.isFollowed) return;
    for (const followed of this.#followed.values()) this.#deadlines.cancel(followed);
    this.#followed.clear();
  }

  /** Something was done to this resource. Renewals are no change. */
  note(resource: string, now: Reading): void {
    if (!this.isFollowed) return;
    const entry = this.#acceptor.entry(resource);
    let followed = this.#followed.get(resource);
    if (entry === undefined || this.#acceptor.isOver(entry, now)) {
      if (followed === undefined) return;
      this.#deadlines.cancel(followed);
      this.#followed.delete(resource);
      this.#mark(resource);
      return;
    }
    if (followed?.owner === entry.leaseOwner && followed.token === entry.token) return;
    if (followed === undefined) {
      followed = new Followed(resource);
      this.#followed.set(resource, followed);
    }
    followed.owner = entry.leaseOwner;
    followed.token = entry.token;
    this.#deadlines.schedule(followed, entry.leaseEnd);
    this.#mark(resource);
  }

  /** To be called several times a second: a lease that runs out makes no sound. */
  expire(now: Reading): void {
    for (;;) {
      const followed = this.#deadlines.popDue(now.mono);
      if (followed === undefined) return;
      const entry = this.#acceptor.entry(followed.resource);
      if (entry === undefined || this.#acceptor.isOver(entry, now)) this.note(followed.resource, now);
      else this.#deadlines.schedule(followed, Math.max(entry.leaseEnd, now.mono + lookAgainMs));
    }
  }

  /** What a follower has not been told yet, or the first part of it. */
  take(follower: Follower): FeedPage {
    const held: ListedLease[] = [];
    const free: string[] = [];
    for (const resource of follower.changed) {
      if (held.length + free.length >= listedMax) break;
      follower.changed.delete(resource);
      const entry = this.#acceptor.entry(resource);
      if (entry !== undefined && this.#followed.has(resource)) held.push(listedLease(resource, entry));
      else free.push(resource);
    }
    return { held, free, more: follower.changed.size > 0 };
  }

  #mark(resource: string): void {
    for (const follower of this.#followers)
      if (resource.startsWith(follower.prefix)) this.#add(follower, resource);
  }

  #add(follower: Follower, resource: string): void {
    if (follower.lost) return;
    follower.changed.add(resource);
    if (follower.changed.size <= untoldMax) return;
    follower.lost = true;
    follower.changed.clear();
  }
}
