import { LeaseholdError } from "../../lease/errors.js";
import type { Reading } from "../protocol/clock.js";
import type { FairWork, Steps } from "./fair-work.js";
import type { FeedPage, Follower, WatchFeed } from "./watch-feed.js";
import { watchHoldMs } from "./watching.js";

/** Concurrent watches per peer; a participant opens no more than this. */
const watchesPerLinkMax = 16;

/** Watches per member. Each takes a few hundred bytes, and a check ten times a second. */
const watchesMax = 10_000;

/** A watch or list without a request for this long is dropped: its peer has abandoned it silently. */
export const askIdleMs = 3 * watchHoldMs;

/** One watch of one peer, and its pending answer (long poll). */
interface Served {
  readonly follower: Follower;
  askedMs: number;
  answer: ((page: FeedPage) => void) | undefined;
  /** Its last page left something out for lack of room, or it has had no page yet. */
  isBehind: boolean;
  /** Its next page is queued. */
  isQueued: boolean;
}

export interface WatchesHost {
  readonly feed: WatchFeed;
  /** @throws LeaseholdError when the acceptor may report nothing */
  reading(): Reading;
  labelled(page: FeedPage): FeedPage;
}

const nothing: FeedPage = { held: [], free: [], more: false, anew: false };

/** The watches that a member serves, each for one connection. */
export class ServedWatches<L> {
  readonly #host: WatchesHost;
  readonly #work: FairWork<L>;
  readonly #watches = new Map<L, Map<number, Served>>();
  #count = 0;

  constructor(host: WatchesHost, work: FairWork<L>) {
    this.#host = host;
    this.#work = work;
  }

  has(link: L, session: number): boolean {
    return this.#watches.get(link)?.has(session) === true;
  }

  /** Answers when something has changed, or after a while. The first request is answered at once. */
  ask(link: L, session: number, prefix: string): Promise<FeedPage> {
    const nowMs = this.#host.reading().mono;
    const served = this.#watches.get(link)?.get(session) ?? this.#begin(link, session, prefix);
    served.askedMs = nowMs;
    // A second concurrent request takes the answer.
    served.answer?.(nothing);
    return new Promise((resolve) => {
      served.answer = resolve;
      if (served.isBehind) this.#queue(link, session, served);
    });
  }

  #begin(link: L, session: number, prefix: string): Served {
    const watches = this.#watches.get(link) ?? new Map<number, Served>();
    if (watches.size >= watchesPerLinkMax || this.#count >= watchesMax)
      throw new LeaseholdError("UNREACHABLE", "as many watches as there may be are open here");
    const follower = this.#host.feed.follow(prefix);
    const served = { follower, askedMs: 0, answer: undefined, isBehind: true, isQueued: false };
    watches.set(session, served);
    this.#watches.set(link, watches);
    this.#count += 1;
    return served;
  }

  end(link: L, session: number): boolean {
    const watches = this.#watches.get(link);
    const served = watches?.get(session);
    if (watches === undefined || served === undefined) return false;
    watches.delete(session);
    if (watches.size === 0) this.#watches.delete(link);
    this.#count -= 1;
    served.answer?.(nothing);
    served.answer = undefined;
    this.#host.feed.unfollow(served.follower);
    return true;
  }

  /** The peer's watches end with its connection. */
  endAll(link: L): void {
    for (const session of this.#watches.get(link)?.keys() ?? []) this.end(link, session);
  }

  close(): void {
    for (const link of this.#watches.keys()) this.endAll(link);
  }

  /** Answers watchers with the changes since the last call. Called several times a second. */
  maintain(nowMs: number): void {
    for (const [link, watches] of this.#watches) {
      for (const [session, served] of watches) this.#look(link, session, served, nowMs);
    }
  }

  #look(link: L, session: number, served: Served, nowMs: number): void {
    const quietMs = nowMs - served.askedMs;
    if (served.answer === undefined) {
      if (quietMs > askIdleMs) this.end(link, session);
    } else if (quietMs >= watchHoldMs || this.#host.feed.hasNews(served.follower)) {
      this.#queue(link, session, served);
    }
  }

  #queue(link: L, session: number, served: Served): void {
    if (served.isQueued) return;
    served.isQueued = true;
    this.#work.add(link, this.#page(served)).catch(() => {
      // A pending answer can no longer be made: the watcher finds no session, and begins another.
      this.end(link, session);
    });
  }

  *#page(served: Served): Steps<void> {
    try {
      const page = yield* this.#host.feed.take(served.follower, () => this.#host.reading());
      // A queued page is sent even if it is empty: it completes the first answer.
      const isQuiet = page.held.length + page.free.length === 0 && !page.more && !served.isBehind;
      const heldBackMs = this.#host.reading().mono - served.askedMs;
      if (isQuiet && heldBackMs < watchHoldMs) return;
      const { answer } = served;
      served.answer = undefined;
      served.isBehind = page.more;
      answer?.(this.#host.labelled(page));
    } finally {
      served.isQueued = false;
    }
  }
}
