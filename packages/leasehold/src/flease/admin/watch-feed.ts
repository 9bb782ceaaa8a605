import { Deadlines } from "../../common/deadlines.js";
import type { DeadlineItem } from "../../common/deadlines.js";
import type { Acceptor } from "../protocol/acceptor.js";
import { ChangeLog } from "./change-log.js";
import type { Reading } from "../protocol/clock.js";
import { looksPerStep } from "./fair-work.js";
import type { Steps } from "./fair-work.js";
import { listedLease, listedMax, Scan } from "./listing.js";
import type { ListedLease, ListPage } from "./listing.js";

/** The earliest that a lease which seemed to be over is looked at again. */
const lookAgainMs = 10;

/**
 * Ends that one call of `expire` looks at: some milliseconds. At ten calls a second, more than a member can
 * renew.
 */
const endsPerCall = 10_000;

/** Bounds that tests make small. */
export interface FeedBounds {
  /** What one page tells at most. */
  readonly pageMax: number;
  /** What one step looks at. */
  readonly looksPerStep: number;
  /** Changes that are kept for those who have not been told, however many they are. */
  readonly changesMax: number;
}

/** With 65,536 changes: some ten megabytes. */
const feedBounds: FeedBounds = { pageMax: listedMax, looksPerStep, changesMax: 65_536 };

/** What changed at one acceptor, as it goes over the wire as JSON. */
export interface FeedPage extends ListPage {
  /** Resources that have none any more. */
  readonly free: readonly string[];
  /**
   * What was told before counts no more: everything that is held is told from here on, and is complete with
   * the first page that has no more after it.
   */
  readonly anew: boolean;
}

/** A lease as the followers were last told of it. */
class Followed implements DeadlineItem {
  readonly resource: string;
  owner = "";
  token = 0;
  /** Before this moment on the steady clock nobody met it when it was over. */
  endMs: number;
  heapIndex = -1;

  constructor(resource: string, endMs: number) {
    this.resource = resource;
    this.endMs = endMs;
  }
}

/** One who follows the changes below a prefix: its places in what is held, and in what has changed. */
export class Follower {
  readonly prefix: string;
  /** Where it goes on reading what has changed. */
  place = 0;
  /** Where it goes on reading what is held; `undefined` when it knows that. */
  scan: Scan | undefined;
  /** It has been told nothing, or missed something. */
  beginsAnew = true;

  constructor(prefix: string) {
    this.prefix = prefix;
  }
}

/**
 * What happens to the leases of one acceptor, for those who watch. It is beside the protocol: it looks at
 * entries and changes none. While nobody follows it costs one comparison for each request; else the same for
 * one follower as for a thousand.
 *
 * A lease is looked after from when a follower may have been told of it. What no scan has met yet, no
 * follower knows.
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

  /** A new follower is first told of everything that is held. */
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

  /** There may be something to tell. */
  hasNews(follower: Follower): boolean {
    return follower.beginsAnew || follower.scan !== undefined || follower.place < this.#log.end;
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
      this.#log.add(resource);
      return;
    }
    const isSame = followed?.owner === entry.leaseOwner && followed.token === entry.token;
    // From its end on, until `expire` comes, somebody may have met it when it was over: then its late renewal
    // is news.
    if (isSame && now.mono < followed!.endMs) return;
    followed ??= this.#lookAfter(resource, entry.leaseExpiresMonoMs);
    followed.endMs = entry.leaseExpiresMonoMs;
    followed.owner = entry.leaseOwner;
    followed.token = entry.token;
    this.#log.add(resource);
  }

  /** Something beside the lease has changed that those who follow it are to know. */
  changed(resource: string): void {
    if (this.#followed.has(resource)) this.#log.add(resource);
  }

  #lookAfter(resource: string, endMs: number): Followed {
    const followed = new Followed(resource, endMs);
    this.#followed.set(resource, followed);
    this.#deadlines.schedule(followed, endMs);
    return followed;
  }

  /** To be called several times a second: a lease that runs out makes no sound. */
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

  /** What a follower has not been told yet, or the first part of it. */
  *take(follower: Follower, now: () => Reading): Steps<FeedPage> {
    const { pageMax, looksPerStep: looks } = this.#bounds;
    // Between two steps a resource may change once more: a page tells the last that it has seen of each.
    const told = new Map<string, ListedLease | undefined>();
    // What has changed comes first: so a follower keeps up with it during a long scan.
    const anew = follower.beginsAnew || this.#hasMissed(follower);
    if (anew) {
      follower.beginsAnew = false;
      follower.place = this.#log.end;
      follower.scan = new Scan(this.#acceptor, follower.prefix, looks);
    }
    yield* this.#readChanges(follower, told);
    if (follower.scan !== undefined && told.size < pageMax) {
      yield* follower.scan.go(now, (resource, entry) => {
        if (!this.#followers.has(follower)) return false; // It has gone between two steps.
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

  /** What it has not read yet is not kept any more. */
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
        if (this.#hasMissed(follower)) return; // The next page begins anew.
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
