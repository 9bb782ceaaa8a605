import { Deadlines } from "../../common/deadlines.js";
import type { DeadlineItem } from "../../common/deadlines.js";
import type { Acceptor } from "../protocol/acceptor.js";
import { ChangeLog } from "./change-log.js";
import type { Reading } from "../protocol/clock.js";
import { looksPerStep } from "./fair-work.js";
import type { Steps } from "./fair-work.js";
import { listedLease, listedMax, Scan } from "./listing.js";
import type { ListedLease, ListPage } from "./listing.js";

/** Minimum delay before an apparently expired lease is checked again. */
const lookAgainMs = 10;

/**
 * Expiries visited by one call of `expire`: a few milliseconds. At ten calls a second this is more than a
 * member can renew.
 */
const endsPerCall = 10_000;

/** Bounds that tests reduce. */
export interface FeedBounds {
  /** Upper bound of a page. */
  readonly pageMax: number;
  /** Items visited in one step. */
  readonly looksPerStep: number;
  /** Changes kept for followers that lag behind, shared by all of them. */
  readonly changesMax: number;
}

/** With 65,536 changes: about ten megabytes. */
const feedBounds: FeedBounds = { pageMax: listedMax, looksPerStep, changesMax: 65_536 };

/** Changes at one acceptor, as JSON on the wire. */
export interface FeedPage extends ListPage {
  /** Resources that no longer have a lease. */
  readonly free: readonly string[];
  /**
   * Earlier reports are void: all held leases are reported again from here on, and the report is complete
   * with the first page without `more`.
   */
  readonly anew: boolean;
}

/** A lease as last reported to followers. */
class Followed implements DeadlineItem {
  readonly resource: string;
  owner = "";
  token = 0;
  /** Until this time (steady) no follower has seen it expired. */
  endMs: number;
  heapIndex = -1;

  constructor(resource: string, endMs: number) {
    this.resource = resource;
    this.endMs = endMs;
  }
}

/** A follower of the changes below a prefix: its positions in the leases and in the changes. */
export class Follower {
  readonly prefix: string;
  /** Position in the changes. */
  place = 0;
  /** Position in the leases; `undefined` when it has read them. */
  scan: Scan | undefined;
  /** The follower has read nothing, or missed changes. */
  beginsAnew = true;

  constructor(prefix: string) {
    this.prefix = prefix;
  }
}

/**
 * Changes of one acceptor's leases, for watchers. It is outside the protocol: it reads entries and changes
 * none. Without followers it costs one comparison per request; otherwise the same for one follower as for a
 * thousand.
 *
 * A lease is tracked once a follower may have read it. Leases that no scan has reached yet are unknown to
 * every follower.
 */
export class WatchFeed {
  readonly #acceptor: Acceptor;
  readonly #followers = new Set<Follower>();
  #followed = new Map<string, Followed>();
  #deadlines = new Deadlines<Followed>();
  readonly #bounds: FeedBounds;
  #log: ChangeLog;

  constructor(acceptor: Acceptor, bounds: FeedBounds = feedBounds) {
    this.#acceptor = acceptor;
    this.#bounds = bounds;
    this.#log = new ChangeLog(bounds.changesMax);
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0;
  }

  /** A new follower first reads everything that is held. */
  follow(prefix: string): Follower {
    const follower = new Follower(prefix);
    this.#followers.add(follower);
    return follower;
  }

  unfollow(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.isFollowed) return;
    this.#followed = new Map();
    this.#deadlines = new Deadlines();
    this.#log = new ChangeLog(this.#bounds.changesMax);
  }

  /** Whether there may be something to read. */
  hasNews(follower: Follower): boolean {
    return follower.beginsAnew || follower.scan !== undefined || follower.place < this.#log.end;
  }

  /** An operation touched this resource. Renewals are no change. */
  note(resource: string, now: Reading): void {
    if (!this.isFollowed) return;
    const entry = this.#acceptor.entry(resource);
    let followed = this.#followed.get(resource);
    if (entry === undefined || this.#acceptor.isOver(entry, now)) {
      if (followed === undefined) return;
      this.#deadlines.cancel(followed);
      this.#followed.delete(resource);
      this.#log.add(resource);
      return;
    }
    const isSame = followed?.owner === entry.leaseOwner && followed.token === entry.token;
    // Between its end and the next `expire`, a follower may have seen it expired, so a late renewal is a
    // change.
    if (isSame && now.mono < followed!.endMs) return;
    followed ??= this.#lookAfter(resource, entry.leaseExpiresMonoMs);
    followed.endMs = entry.leaseExpiresMonoMs;
    followed.owner = entry.leaseOwner;
    followed.token = entry.token;
    this.#log.add(resource);
  }

  /** The data of a lease has changed, which followers should see. */
  changed(resource: string): void {
    if (this.#followed.has(resource)) this.#log.add(resource);
  }

  #lookAfter(resource: string, endMs: number): Followed {
    const followed = new Followed(resource, endMs);
    this.#followed.set(resource, followed);
    this.#deadlines.schedule(followed, endMs);
    return followed;
  }

  /** Detects expired leases, since expiry causes no event. Called several times a second. */
  expire(now: Reading): void {
    for (let looked = 0; looked < endsPerCall; looked += 1) {
      const followed = this.#deadlines.popDue(now.mono);
      if (followed === undefined) return;
      const entry = this.#acceptor.entry(followed.resource);
      if (entry === undefined || this.#acceptor.isOver(entry, now)) {
        this.note(followed.resource, now);
        continue;
      }
      followed.endMs = entry.leaseExpiresMonoMs;
      this.#deadlines.schedule(followed, Math.max(entry.leaseExpiresMonoMs, now.mono + lookAgainMs));
    }
  }

  /** The follower's unread changes, or the first part of them. */
  *take(follower: Follower, now: () => Reading): Steps<FeedPage> {
    const { pageMax, looksPerStep: looks } = this.#bounds;
    // A resource may change again between two steps: a page contains the last version it has seen of each.
    const told = new Map<string, ListedLease | undefined>();
    // Changes come first, so that a follower keeps up with them during a long scan.
    const anew = follower.beginsAnew || this.#hasMissed(follower);
    if (anew) {
      follower.beginsAnew = false;
      follower.place = this.#log.end;
      follower.scan = new Scan(this.#acceptor, follower.prefix, looks);
    }
    yield* this.#readChanges(follower, told);
    if (follower.scan !== undefined && told.size < pageMax) {
      yield* follower.scan.go(now, (resource, entry) => {
        if (!this.#followers.has(follower)) return false; // The follower left between two steps.
        const followed = this.#followed.get(resource) ?? this.#lookAfter(resource, entry.leaseExpiresMonoMs);
        followed.owner = entry.leaseOwner;
        followed.token = entry.token;
        return told.set(resource, listedLease(resource, entry)).size < pageMax;
      });
      if (follower.scan.isOver) follower.scan = undefined;
    }
    const more = told.size >= pageMax || follower.scan !== undefined || this.#hasMissed(follower);
    const held = [...told.values()].filter((lease) => lease !== undefined);
    const free = [...told.keys()].filter((resource) => told.get(resource) === undefined);
    return { held, free, more, anew };
  }

  /** Whether changes that the follower has not read were dropped. */
  #hasMissed(follower: Follower): boolean {
    return follower.place < this.#log.begin;
  }

  *#readChanges(follower: Follower, told: Map<string, ListedLease | undefined>): Steps<void> {
    const { pageMax } = this.#bounds;
    let looked = 0;
    follower.place = Math.max(follower.place, this.#log.begin);
    while (follower.place < this.#log.end && told.size < pageMax) {
      if (looked === this.#bounds.looksPerStep) {
        yield;
        looked = 0;
        if (this.#hasMissed(follower)) return; // The next page starts over.
      }
      looked += 1;
      const resource = this.#log.at(follower.place);
      follower.place += 1;
      if (resource === undefined || !resource.startsWith(follower.prefix)) continue;
      const entry = this.#acceptor.entry(resource);
      const isHeld = entry !== undefined && this.#followed.has(resource);
      told.set(resource, isHeld ? listedLease(resource, entry) : undefined);
    }
  }
}
