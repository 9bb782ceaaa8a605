import { LeaseholdError } from "../lease/errors.js";
import type { ReleaseRequest } from "../lease/provider.js";
import type { Acceptor } from "./acceptor.js";
import type { Reading } from "./clock.js";
import { listLeases } from "./listing.js";
import type { ListedLease } from "./listing.js";
import type { FleasePeer } from "./peer.js";
import { answerOn } from "./side-answers.js";
import type { ResourceAnswer } from "./side-answers.js";
import type { FeedPage, Follower } from "./watch-feed.js";
import { watchHoldMs } from "./watching.js";

/** Watches of one peer at a time; a participant has no more. */
const WATCHES_PER_LINK_MAX = 16;

/** Watches at one member: each change is compared with the prefix of each. */
const WATCHES_MAX = 1_000;

/** A watch that nobody has asked for so long is forgotten: its peer has gone on without a word. */
const WATCH_IDLE_MS = 3 * watchHoldMs;

/** How long the holder of a resource may take to confirm that it was told of a request. */
const PASS_ON_TIMEOUT_MS = 1_000;

/** How often labels of the departed are looked for. */
const SWEEP_EVERY_MS = 5_000;

/** A connection, as far as side calls care for it. */
export interface SideLink {
  /** Owner name of the peer at its end. */
  readonly owner: string;
  readonly role: "member" | "client" | "observer";
}

/** Whoever runs the peer: the host's driver, or the simulator's. */
export interface SideHost<L extends SideLink> {
  readonly peer: FleasePeer;
  /** A fresh reading of the peer's clock. */
  now(): Reading;
  readonly provider: { releaseRequested(request: ReleaseRequest): void };
  readonly transport: {
    /** A member's connection to itself. */
    readonly loopback: L | undefined;
    readonly links: Iterable<L>;
    call(link: L, method: string, params: object, timeoutMs: number): Promise<unknown>;
  };
}

/** What participants say of themselves. */
export interface SideLabels<L extends SideLink> {
  set(link: L, label: unknown): boolean;
  of(owner: string): string | undefined;
  gone(link: L, nowMs: number): void;
  sweep(nowMs: number): void;
}

/** One watch of one peer, and the answer that is held back until there is something to tell. */
interface Served {
  readonly follower: Follower;
  askedMs: number;
  answer: ((page: FeedPage) => void) | undefined;
}

type Params = Readonly<Record<string, unknown>>;

/** What a member answers to side calls about resources, and what a holder does when it is asked to release. */
export class SideCalls<L extends SideLink> {
  readonly #node: SideHost<L>;
  readonly labels: SideLabels<L>;
  readonly #watches = new Map<L, Map<number, Served>>();
  #watchCount = 0;
  #sweptMs = 0;

  constructor(node: SideHost<L>, labels: SideLabels<L>) {
    this.#node = node;
    this.labels = labels;
  }

  answer(link: L, method: string, given: unknown): unknown {
    const params = (typeof given === "object" && given !== null ? given : {}) as Params;
    switch (method) {
      case "list":
        return this.#list(params);
      case "explain":
        return this.#explain(text(params["resource"]));
      case "watch":
        return this.#watch(link, params);
      case "unwatch":
        return this.#unwatch(link, Number(params["session"]));
      case "label":
        return this.labels.set(link, params["label"]);
      case "break":
        return this.#break(text(params["resource"]), text(params["owner"]));
      case "requestRelease":
        return this.#passOn(link, text(params["resource"]), text(params["owner"]), params["broken"] === true);
      case "releaseRequested":
        return this.#requested(link, params);
      default:
        throw new LeaseholdError(
          "VERSION_MISMATCH",
          `this member does not know the call ${JSON.stringify(method)}`,
        );
    }
  }

  /** The peer's watches end with its connection. */
  disconnected(link: L): void {
    const watches = this.#watches.get(link);
    for (const session of watches?.keys() ?? []) this.#unwatch(link, session);
    this.labels.gone(link, this.#node.now().mono);
  }

  /** To be called several times a second: tells those who watch what has changed meanwhile, all at once. */
  maintain(now: Reading): void {
    for (const [link, watches] of this.#watches) {
      for (const [session, served] of watches) this.#serve(link, session, served, now.mono);
    }
    if (now.mono - this.#sweptMs < SWEEP_EVERY_MS) return;
    this.#sweptMs = now.mono;
    this.labels.sweep(now.mono);
  }

  /** Everything ends: whoever waits for an answer learns it from the connection. */
  close(): void {
    for (const link of this.#watches.keys()) this.disconnected(link);
  }

  #list(params: Params): readonly ListedLease[] | null {
    const acceptor = this.#readyAcceptor();
    if (acceptor === undefined) return null;
    const listed = listLeases(acceptor, text(params["prefix"]), this.#node.now(), text(params["after"]));
    return listed.map((lease) => this.#labelled(lease));
  }

  #explain(resource: string): ResourceAnswer {
    const { peer } = this.#node;
    const { acceptor } = peer;
    if (acceptor === undefined) throw new LeaseholdError("UNREACHABLE", "no member answers here");
    const answer = answerOn(acceptor, resource, this.#node.now());
    const label = this.labels.of(answer.owner);
    return {
      ...answer,
      ...(peer.fault !== undefined && { state: "clock-fault" }),
      waiting: answer.state === "ready" ? peer.waitersFor(resource) : 0,
      ...(label !== undefined && { label }),
    };
  }

  #break(resource: string, owner: string): boolean {
    return this.#node.peer.acceptor?.bar(resource, owner, this.#node.now()) ?? false;
  }

  /** True when the holder confirms that it has heard of it. */
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
      return (await transport.call(to, "releaseRequested", params, PASS_ON_TIMEOUT_MS)) === true;
    } catch {
      return false; // Another member may reach it.
    }
  }

  #requested(from: L, params: Params): boolean {
    if (from.role !== "member") return false;
    const { provider } = this.#node;
    provider.releaseRequested({
      resource: text(params["resource"]),
      by: text(params["by"]),
      broken: params["broken"] === true,
    });
    return true;
  }

  /** Answers when something has changed, or after a while: at once whoever asks for the first time. */
  #watch(link: L, params: Params): Promise<FeedPage> | FeedPage {
    const session = Number(params["session"]);
    const { feed } = this.#node.peer;
    if (feed === undefined || this.#readyAcceptor() === undefined)
      throw new LeaseholdError("UNREACHABLE", "a member that recovers tells nothing");
    const now = this.#node.now();
    const watches = this.#watches.get(link) ?? new Map<number, Served>();
    let served = watches.get(session);
    if (served === undefined) {
      if (watches.size >= WATCHES_PER_LINK_MAX || this.#watchCount >= WATCHES_MAX)
        throw new LeaseholdError("UNREACHABLE", "as many watches as there may be are open here");
      served = { follower: feed.follow(text(params["prefix"]), now), askedMs: now.mono, answer: undefined };
      watches.set(session, served);
      this.#watches.set(link, watches);
      this.#watchCount += 1;
      return this.#page(served);
    }
    if (served.follower.lost) {
      this.#unwatch(link, session);
      throw new LeaseholdError("UNREACHABLE", "too much has changed since the last answer");
    }
    served.askedMs = now.mono;
    const asked = served;
    return new Promise((resolve) => {
      asked.answer = resolve;
    });
  }

  #unwatch(link: L, session: number): boolean {
    const watches = this.#watches.get(link);
    const served = watches?.get(session);
    if (watches === undefined || served === undefined) return false;
    watches.delete(session);
    if (watches.size === 0) this.#watches.delete(link);
    this.#watchCount -= 1;
    served.answer?.({ held: [], free: [], more: false });
    this.#node.peer.feed?.unfollow(served.follower);
    return true;
  }

  #serve(link: L, session: number, served: Served, nowMs: number): void {
    const { answer, follower, askedMs } = served;
    if (answer === undefined) {
      if (nowMs - askedMs > WATCH_IDLE_MS) this.#unwatch(link, session);
      return;
    }
    if (follower.changed.size === 0 && !follower.lost && nowMs - askedMs < watchHoldMs) return;
    served.answer = undefined;
    answer(this.#page(served));
  }

  #page(served: Served): FeedPage {
    const page = this.#node.peer.feed!.take(served.follower);
    return { ...page, held: page.held.map((lease) => this.#labelled(lease)) };
  }

  #labelled(lease: ListedLease): ListedLease {
    const label = this.labels.of(lease.owner);
    return label === undefined ? lease : { ...lease, label };
  }

  /** What a recovering acceptor knows is too little to be told (I15). */
  #readyAcceptor(): Acceptor | undefined {
    const { acceptor } = this.#node.peer;
    return acceptor?.ready === true ? acceptor : undefined;
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
