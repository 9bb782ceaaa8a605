import { LeaseholdError } from "../../lease/errors.js";
import type { ReleaseRequest } from "../../lease/provider.js";
import { watchedMax } from "../../lease/watch-set.js";
import type { Acceptor } from "../protocol/acceptor.js";
import { nodeIdOf } from "../protocol/ballot.js";
import type { Reading } from "../protocol/clock.js";
import type { Views } from "../views/views.js";
import type { Waiters } from "../protocol/waiters.js";
import { FairWork } from "./fair-work.js";
import type { Steps } from "./fair-work.js";
import { LeaseData } from "./lease-data.js";
import { listPage, Scan } from "./listing.js";
import type { ListPage } from "./listing.js";
import { askIdleMs, ServedWatches } from "./served-watches.js";
import { adminParamsOf, answerOn } from "./admin-answers.js";
import type { AdminParams, ResourceAnswer } from "./admin-answers.js";
import type { FeedPage, WatchFeed } from "./watch-feed.js";

/**
 * Concurrent lists per peer, as many as it may request. Beyond that the least recently continued is
 * dropped.
 */
const listsPerLinkMax = 64;

/** Timeout for the holder of a resource to confirm a request. */
const passOnTimeoutMs = 1_000;

/** Interval of the sweep for labels of departed participants. */
const sweepEveryMs = 5_000;

/** A connection, as seen by admin RPCs. */
export interface AdminLink {
  /** Owner name of the peer at its end. */
  readonly owner: string;
  readonly role: "member" | "client" | "observer";
  /** This side's handle of the peer. */
  readonly handle: number;
}

/** A member's peer, as seen by these calls. */
export interface AskedPeer {
  readonly acceptor: Acceptor | undefined;
  readonly feed: WatchFeed | undefined;
  /** Why the peer does not trust its own clock at present. */
  readonly fault: string | undefined;
  readonly waiters: Pick<Waiters, "sizeOf" | "favour">;
  readonly views: Pick<Views, "view">;
}

/** The runner of the peer, in production or in a simulation. */
export interface AdminHost<L extends AdminLink> {
  readonly peer: AskedPeer;
  /** A fresh reading of the peer's clock. */
  now(): Reading;
  readonly provider: { releaseRequested(request: ReleaseRequest): void };
  /** This member's status. */
  status(): unknown;
  /** Called when there is work: call `AdminRpc.work` soon, in a separate turn. */
  adminWork(): void;
  readonly transport: {
    /** A member's connection to itself. */
    readonly loopback: L | undefined;
    readonly links: Iterable<L>;
    call(link: L, method: string, params: object, timeoutMs: number): Promise<unknown>;
  };
}

/** Labels of participants. */
export interface AdminLabels<L extends AdminLink> {
  set(link: L, label: unknown): boolean;
  of(owner: string): string | undefined;
  gone(link: L, nowMs: number): void;
  sweep(nowMs: number): void;
}

/** A list in progress. */
interface Listing {
  readonly scan: Scan;
  /** The page that its peer requests next. */
  page: number;
  askedMs: number;
}

/**
 * Answers a member's admin RPCs about resources, and passes requests for a release to holders. All of it is
 * low-priority work (`FairWork`): acquisitions and renewals run in between.
 */
export class AdminRpc<L extends AdminLink> {
  readonly #node: AdminHost<L>;
  readonly labels: AdminLabels<L>;
  readonly #work: FairWork<L>;
  readonly #lists = new Map<L, Map<number, Listing>>();
  readonly #watches: ServedWatches<L> | undefined;
  readonly #data: LeaseData | undefined;
  readonly #watchedMax: number;
  #sweptMs = 0;

  /** @param most the maximum number of resources per watch; tests make it small */
  constructor(node: AdminHost<L>, labels: AdminLabels<L>, most = watchedMax) {
    this.#watchedMax = most;
    this.#node = node;
    this.labels = labels;
    this.#work = new FairWork(() => node.adminWork());
    const { feed, acceptor } = node.peer;
    this.#data = acceptor && new LeaseData(acceptor);
    if (feed === undefined) return;
    const host = { feed, reading: this.#readyNow, labelled: (page: FeedPage) => this.#labelled(page) };
    this.#watches = new ServedWatches(host, this.#work);
  }

  /** Rejects with a LeaseholdError when the call cannot be answered. */
  answer(link: L, method: string, given: unknown): Promise<unknown> {
    return this.#work.add(link, this.#steps(link, method, adminParamsOf(given)));
  }

  /** Does a step of the work, and more while `goOn()` is true. Returns whether work is left. */
  work(goOn: () => boolean): boolean {
    this.#work.run(goOn);
    return !this.#work.isIdle;
  }

  *#steps(link: L, method: string, params: AdminParams): Steps<unknown> {
    const { resource, owner, prefix, session, broken } = params;
    switch (method) {
      case "status":
        return this.#node.status();
      case "list":
        return yield* this.#list(link, params);
      case "explain":
        return this.#explain(resource);
      case "watch":
        return yield* this.#watch(link, session, prefix);
      case "unwatch":
        return this.#served().end(link, session);
      case "label":
        return this.labels.set(link, params.label);
      case "data":
        return this.#keepData(link, params);
      case "break":
        return this.#break(resource, owner, params.view);
      case "favour":
        return this.#favour(resource, params.to);
      case "requestRelease":
        return this.#passOn(link, resource, owner, broken);
      case "releaseRequested":
        return this.#requested(link, params);
      default:
        throw new LeaseholdError(
          "VERSION_MISMATCH",
          `this member does not know the call ${JSON.stringify(method)}`,
        );
    }
  }

  /** The peer's calls end with its connection. */
  disconnected(link: L): void {
    this.#work.drop(link);
    this.#lists.delete(link);
    this.#watches?.endAll(link);
    this.labels.gone(link, this.#node.now().mono);
  }

  /** Notifies watchers of changes since the last call. Called several times a second. */
  maintain(now: Reading): void {
    this.#watches?.maintain(now.mono);
    if (now.mono - this.#sweptMs < sweepEveryMs) return;
    this.#sweptMs = now.mono;
    this.labels.sweep(now.mono);
    this.#data?.sweep();
    for (const [link, lists] of this.#lists) {
      for (const [session, { askedMs }] of lists) if (now.mono - askedMs > askIdleMs) lists.delete(session);
      if (lists.size === 0) this.#lists.delete(link);
    }
  }

  /** Ends all calls; callers notice that the connection ends. */
  close(): void {
    this.#work.dropAll();
    this.#lists.clear();
    this.#watches?.close();
  }

  /** The first page of a session begins a list, the last one ends it. */
  *#list(link: L, { session, page, prefix }: AdminParams): Steps<ListPage> {
    const lists = this.#lists.get(link) ?? new Map<number, Listing>();
    let listing = lists.get(session);
    const askedMs = this.#readyNow().mono;
    if (page === 0) {
      listing = { scan: new Scan(this.#node.peer.acceptor!, prefix), page, askedMs };
    } else if (listing?.page !== page) {
      throw new LeaseholdError("UNREACHABLE", "this list was given up here, as nobody went on with it");
    }
    lists.delete(session); // Keeps the map ordered by last use.
    const [oldest] = lists.keys();
    if (lists.size >= listsPerLinkMax && oldest !== undefined) lists.delete(oldest);
    lists.set(session, Object.assign(listing, { askedMs, page: page + 1 }));
    this.#lists.set(link, lists);
    const listed = yield* listPage(listing.scan, this.#readyNow);
    if (!listed.more) lists.delete(session);
    return this.#labelled(listed);
  }

  #explain(resource: string): ResourceAnswer {
    const { peer } = this.#node;
    const { acceptor } = peer;
    if (acceptor === undefined) throw new LeaseholdError("UNREACHABLE", "no member answers here");
    const answer = answerOn(acceptor, resource, this.#node.now());
    const label = this.labels.of(answer.owner);
    const data = this.#data?.of(resource, answer.owner, answer.token);
    return {
      ...answer,
      ...(peer.fault !== undefined && { state: "clock-fault" }),
      waiting: answer.state === "ready" ? peer.waiters.sizeOf(resource) : 0,
      ...(label !== undefined && { label }),
      ...(data !== undefined && { data }),
    };
  }

  /** Stores the owner's public data of a lease. */
  #keepData({ owner }: L, { resource, token, data }: AdminParams): boolean {
    const isKept = this.#data?.set(owner, resource, token, data) === true;
    if (isKept) this.#node.peer.feed?.changed(resource);
    return isKept;
  }

  /** False also in a view other than the caller's (MUST): other members may form a majority there. */
  #break(resource: string, owner: string, view: number): boolean {
    const { acceptor, views } = this.#node.peer;
    const bars = acceptor?.bar(resource, owner, this.#node.now()) ?? false;
    // Members of an early build do not report it.
    return bars && (Number.isNaN(view) || view === views.view.stamp);
  }

  /**
   * Hand-over (3.13, E3): one waiter is notified of the release before all others. It changes who is
   * notified first, and no promise of an acceptor. True when a participant of that name waits.
   */
  #favour(resource: string, to: string): boolean {
    const { loopback, links } = this.#node.transport;
    const named = [loopback, ...links].filter((link) => link !== undefined && this.#isNamed(link, to));
    return this.#node.peer.waiters.favour(resource, new Set(named.map((link) => link!.handle)));
  }

  /**
   * Whether the peer goes by this name, as users write it: its label or a part of that, the whole owner name,
   * or the owner name without the incarnation.
   */
  #isNamed({ owner }: L, to: string): boolean {
    const label = this.labels.of(owner) ?? "";
    // A label consists of the user's note and the host, with the process id.
    const [, host, note] = /^(.*?) pid \d+(?:: (.*))?$/s.exec(label) ?? [];
    return [owner, nodeIdOf(owner), label, host, note].includes(to);
  }

  /** Resolves to true when the holder confirms that it has received the request. */
  async #passOn(from: L, resource: string, owner: string, broken: boolean): Promise<boolean> {
    const { transport, peer } = this.#node;
    const now = this.#node.now();
    const entry = peer.acceptor?.entry(resource);
    if (entry?.leaseOwner !== owner || peer.acceptor?.isOver(entry, now) !== false) return false;
    const by = this.labels.of(from.owner) ?? from.owner;
    const to = [transport.loopback, ...transport.links].find((link) => link?.owner === owner);
    if (to === undefined) return false;
    const params = { resource, by, broken };
    if (to === transport.loopback) return this.#requested(to, params);
    try {
      return (await transport.call(to, "releaseRequested", params, passOnTimeoutMs)) === true;
    } catch {
      return false; // Another member may reach it.
    }
  }

  #requested(from: L, { resource, by, broken }: ReleaseRequest): boolean {
    if (from.role !== "member") return false;
    this.#node.provider.releaseRequested({ resource, by, broken });
    return true;
  }

  #labelled<P extends ListPage>(page: P): P {
    const held = page.held.map((lease) => {
      const label = this.labels.of(lease.owner);
      const data = this.#data?.of(lease.resource, lease.owner, lease.token);
      return { ...lease, ...(label !== undefined && { label }), ...(data !== undefined && { data }) };
    });
    return { ...page, held };
  }

  *#watch(link: L, session: number, prefix: string): Steps<Promise<FeedPage>> {
    const watches = this.#served();
    if (!watches.has(link, session)) yield* this.#refuseTooMany(prefix);
    return watches.ask(link, session, prefix);
  }

  /** Checked before the first answer: otherwise a watcher would read for long before it found out. */
  *#refuseTooMany(prefix: string): Steps<void> {
    const acceptor = this.#node.peer.acceptor!;
    if (acceptor.size <= this.#watchedMax) return;
    let held = 0;
    yield* new Scan(acceptor, prefix).go(this.#readyNow, () => (held += 1) <= this.#watchedMax);
    if (held > this.#watchedMax)
      throw new LeaseholdError("WATCH_TOO_WIDE", `more than ${this.#watchedMax} resources are held there`);
  }

  #served(): ServedWatches<L> {
    if (this.#watches === undefined) throw new LeaseholdError("UNREACHABLE", "no member answers here");
    return this.#watches;
  }

  /** A recovering acceptor knows too little to report (I15). */
  readonly #readyNow = (): Reading => {
    if (this.#node.peer.acceptor?.ready !== true)
      throw new LeaseholdError("UNREACHABLE", "a recovering member does not answer this");
    return this.#node.now();
  };
}
