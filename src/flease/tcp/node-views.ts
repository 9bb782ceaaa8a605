import { LeaseholdError } from "../../lease/errors.js";
import { isRecord } from "../../common/json.js";
import { majorityOf } from "../../common/majority.js";
import { parseAddress } from "../../runtime/address.js";
import type { FleasePeer, PeerViews } from "../peer.js";
import { cellSizeDefaultMax } from "../protocol/cells.js";
import type { Reading } from "../protocol/clock.js";
import { memberIdsMax } from "../protocol/settings.js";
import { firstView, votersOf } from "../protocol/views.js";
import type { KeptView, Membership } from "../protocol/views.js";
import type { Cluster } from "./cluster.js";
import type { Link } from "./transport/link.js";
import type { Transport } from "./transport/transport.js";
import { readToldView, readViewOffer, writeToldView } from "./view-notes.js";
import type { ToldView, ViewFile } from "./view-notes.js";
import { ViewPublisher } from "./view-publisher.js";

/** How long another participant may take to confirm that it was told of a view, ms. */
const tellTimeoutMs = 1_000;

/**
 * A member that was asked for its consent to a change gives none to another for so long, ms: by then the
 * change has begun and is told, or was given up.
 */
const consentMs = 4 * tellTimeoutMs;

/** A participant that has asked one member for a view asks no other for so long, ms. */
const askPatienceMs = 300;

/** One that cannot take a view asks for it again after this time, ms. */
const refusedViewMs = 10_000;

/** How long a member that is to be added may take to be connected, and how often that is looked at, ms. */
const connectMs = 3_000;
const connectLookMs = 20;

/** What the views of a participant need of it. */
export interface ViewsHost {
  readonly nodeId: string;
  readonly role: string;
  readonly cluster: Cluster;
  readonly peer: FleasePeer;
  readonly transport: Transport;
  now(): Reading;
  link(member: number): Link | undefined;
  /** Connects to members of the present view, and is no longer connected to others. */
  dialMembers(): void;
  /** Begins a change of the members, as `FleasePeer.changeMembers`. */
  after(delayMs: number, run: () => void): void;
  log(text: string): void;
}

/** How a change stands, for who asked for it. */
export interface ViewStatus {
  readonly number: number;
  readonly members: Readonly<Record<string, string>>;
  readonly cellSize: number;
  /** In a joint view: the members before, those that are waited for, and how long this one waits, ms. */
  readonly joint?: {
    readonly before: readonly string[];
    readonly unsettled: readonly string[];
    readonly waitMs: number;
  };
}

/** Tells others of this participant's view, hears of theirs, and changes the members when it is asked to. */
export class NodeViews {
  readonly #host: ViewsHost;
  readonly #file: ViewFile | undefined;
  readonly #begin: (KeptView & Pick<ToldView, "addresses">) | undefined;
  #voterStamp = 0;
  #voterIds: ReadonlySet<string> = new Set();
  readonly #publisher: ViewPublisher;
  #publishedStamp = 0;
  #complained = false;
  /** Asks nobody for a view before this time on the steady clock. */
  #asksFromMono = -Infinity;
  /** Who has this member's consent to begin a change, of which view, and until when, on the steady clock. */
  #consentTo = "";
  #consentStamp = 0;
  #consentUntilMono = -Infinity;

  constructor(
    host: ViewsHost,
    file: ViewFile | undefined,
    current: (KeptView & Pick<ToldView, "addresses">) | undefined,
  ) {
    this.#host = host;
    this.#file = file;
    this.#begin = file?.read() ?? current;
    if (this.#begin !== undefined) this.#learn(this.#begin.addresses);
    this.#publisher = new ViewPublisher(host, () => this.document());
  }

  /** For the peer. Who has no vote goes back at a restart, and may. */
  port(): PeerViews {
    const { nodeId, role, cluster } = this.#host;
    const { settings, foundedBy } = cluster;
    // Not those that are only known, as one that is to be added.
    const first = firstView({ ...settings, members: settings.members.slice(0, foundedBy) });
    const begin = this.#begin ?? { view: first, barrier: 0 };
    const isMember = role === "member";
    return { id: isMember ? nodeId : "", kept: begin, keep: (kept) => !isMember || this.#keep(kept) };
  }

  #keep(kept: KeptView): boolean {
    try {
      if (this.#file === undefined) throw new Error("it was started without a file for views");
      this.#file.write({ ...kept, settled: new Map(), addresses: this.#addressesOf(votersOf(kept.view)) });
      return true;
    } catch (error) {
      if (!this.#complained)
        this.#host.log(`this member cannot take part in a change: ${(error as Error).message}`);
      this.#complained = true;
      return false;
    }
  }

  /** False when there is no place left for one of them. */
  #learn(addresses: Readonly<Record<string, string>>): boolean {
    return Object.entries(addresses).every(([id, address]) => this.#host.cluster.learn(id, address));
  }

  #addressesOf(ids: readonly string[]): Record<string, string> {
    const { settings, addresses } = this.#host.cluster;
    const index = new Map(settings.members.map((id, at) => [id, at]));
    return Object.fromEntries(ids.map((id) => [id, addresses[index.get(id)!]!]));
  }

  /** Those with a vote, by their index. */
  voters(): number[] {
    const { members } = this.#host.cluster.settings;
    return votersOf(this.#host.peer.views.view).map((id) => members.indexOf(id));
  }

  /** Asked for each batch of a member. */
  isVoter(id: string): boolean {
    const { view } = this.#host.peer.views;
    if (view.stamp !== this.#voterStamp) {
      this.#voterStamp = view.stamp;
      this.#voterIds = new Set(votersOf(view));
    }
    return this.#voterIds.has(id);
  }

  #told(): ToldView {
    const note = this.#host.peer.views.note();
    return { ...note, addresses: this.#addressesOf(votersOf(note.view)) };
  }

  /** What goes to others, and to clients in the description of the cluster. */
  document(): object {
    return writeToldView(this.#told());
  }

  /** A new connection: each side offers its view to the other, so that none stays behind. */
  connected(link: Link): void {
    this.#publisher.offer(link);
  }

  /** CALL `view`: a member offers its view, or sends it. */
  heard(from: Link, params: unknown): object {
    if (from.role !== "member") throw new LeaseholdError("PERMISSION_DENIED", "only members tell of views");
    const { peer } = this.#host;
    const now = this.#host.now();
    const offer = readViewOffer(params, peer.views.view);
    if (offer !== undefined) {
      peer.hearView({ ...peer.views.note(), settled: offer.settled }, now);
      return { stamp: peer.views.view.stamp, wants: this.#wants(offer.number, now) };
    }
    const told = readToldView(params);
    if (told.view.number > peer.views.view.number && !this.#learn(told.addresses)) this.#refuseView(now);
    if (peer.hearView(told, now)) this.#entered();
    const isAsked = isRecord(params) && params["begins"] === true;
    const consents = !isAsked || this.#consents(from.peerId);
    return { stamp: peer.views.view.stamp, keeps: this.#file !== undefined, consents };
  }

  /** Of all that offer a newer view one is asked for it, and another one when that does not send it. */
  #wants(number: number, { mono }: Reading): boolean {
    const isOfUse = number > this.#host.peer.views.view.number && mono >= this.#asksFromMono;
    if (isOfUse) this.#asksFromMono = mono + askPatienceMs;
    return isOfUse;
  }

  #refuseView({ mono }: Reading): never {
    const why = `the members have changed, and this process has met ${memberIdsMax} ids of members, and no more: restart it`;
    this.#asksFromMono = mono + refusedViewMs;
    if (!this.#complained) this.#host.log(why);
    this.#complained = true;
    throw new LeaseholdError("CONFIG_MISMATCH", why);
  }

  /**
   * Two that begin a change at one moment would make two joint views, and with half of the members in each
   * neither would ever end. So each asks all for their consent, and of two no more than one gets a majority.
   */
  #consents(to: string): boolean {
    const { mono } = this.#host.now();
    const { stamp } = this.#host.peer.views.view;
    const isGiven = this.#consentStamp === stamp && mono < this.#consentUntilMono;
    if (isGiven && this.#consentTo !== to) return false;
    this.#consentTo = to;
    this.#consentStamp = stamp;
    this.#consentUntilMono = mono + consentMs;
    return true;
  }

  /** To be called several times a second. */
  maintain(now: Reading): void {
    const { view } = this.#host.peer.views;
    if (this.#publishedStamp === 0) this.#publishedStamp = view.stamp;
    if (view.stamp !== this.#publishedStamp) this.#entered();
    else this.#publisher.maintain(now);
  }

  #entered(): void {
    const { peer } = this.#host;
    const { view } = peer.views;
    this.#publishedStamp = view.stamp;
    const kind = view.before === undefined ? "view" : "joint view";
    this.#host.log(`${kind} ${view.number}: ${votersOf(view).join(", ")}`);
    this.#publisher.offerAll();
    this.#host.dialMembers();
  }

  /** CALL `members`. */
  status(): ViewStatus {
    const { views } = this.#host.peer;
    const { number, members, cellSize, before } = views.view;
    const waitMs = views.waitLeftMs(this.#host.now());
    const joint = before && { before: before.members, unsettled: views.unsettled(), waitMs };
    return { number, members: this.#addressesOf(members), cellSize, ...(joint && { joint }) };
  }

  /**
   * CALL `change`: adds a member, removes one, or replaces one. Resolves when the change has begun. Only for
   * who may be a member: others could put one of their own in the place of each.
   */
  async change(from: Link, params: unknown): Promise<ViewStatus> {
    if (!from.mayBeMember)
      throw new LeaseholdError(
        "PERMISSION_DENIED",
        "the members are changed with credentials of a member: its certificate, or a file with the member key alone",
      );
    const { add, address, remove } = isRecord(params) ? params : {};
    const { views } = this.#host.peer;
    const { view } = views;
    const stay = view.members.filter((id) => id !== remove);
    if (remove !== undefined && stay.length === view.members.length)
      refuse(`${JSON.stringify(remove)} is no member`);
    const members = [...stay];
    if ((add === undefined) !== (address === undefined)) refuse("a member is added with its address");
    if (typeof add === "string" && typeof address === "string") {
      if (view.members.includes(add)) refuse(`${JSON.stringify(add)} is a member already`);
      parseAddress(address);
      members.push(add);
    }
    const next = { members: members.sort(), cellSize: cellSizeAfter(view, members.length) };
    const why = views.whyNoChange(next);
    if (why !== undefined) refuse(`${why}${this.#waitText()}`);
    if (typeof add === "string") await this.#connect(add, address as string);
    await this.#askAll(next, view.stamp);
    const meanwhile = views.whyNoChange(next);
    if (meanwhile !== undefined) refuse(meanwhile);
    if (typeof add === "string") this.#place(add, address as string);
    if (!this.#host.peer.changeMembers(next, this.#host.now()))
      refuse(
        `${this.#host.nodeId} has no file for views that it can write: start it with one (--views-file FILE)`,
      );
    this.#entered();
    return this.status();
  }

  #waitText(): string {
    const { joint } = this.status();
    return joint === undefined ? "" : `: ${Math.ceil(joint.waitMs / 1_000)} s are left of this member's wait`;
  }

  #place(id: string, address: string): void {
    if (!this.#host.cluster.learn(id, address))
      refuse(`a cluster has at most ${memberIdsMax} members in its time`);
  }

  /** A member that is added must be there, or the others would wait for it. */
  async #connect(id: string, address: string): Promise<void> {
    const { cluster, transport, role } = this.#host;
    this.#place(id, address);
    if (role === "member") transport.dial(address, id);
    // Looked up each time: another call that has given up may have given back the place.
    const link = () => this.#host.link(cluster.settings.members.indexOf(id));
    for (let waitedMs = 0; link() === undefined; waitedMs += connectLookMs) {
      if (waitedMs > connectMs) {
        // MUST keep the place of one that another member has added meanwhile: the cells count by it.
        if (!this.isVoter(id)) {
          transport.undial(address);
          cluster.unlearn(id);
        }
        refuse(`${id} cannot be reached at ${address}: start it first`);
      }
      await new Promise<void>((resolve) => this.#host.after(connectLookMs, resolve));
    }
  }

  /**
   * All members that will have a vote and can be reached must keep views, and a majority of those before and
   * of those after must be in the present view and consent: a change that could not go on would stop the
   * cluster.
   */
  async #askAll(next: Membership, stamp: number): Promise<void> {
    const { cluster, transport, nodeId } = this.#host;
    const present = this.#host.peer.views.view.members;
    const agree = new Set(this.#file === undefined ? [] : [nodeId]);
    if (!this.#consents(nodeId)) refuse(`${this.#consentTo} is beginning another change: try again`);
    if (this.#file === undefined)
      refuse(`${nodeId} was started without a file for views (--views-file FILE)`);
    const others = new Set([...present, ...next.members].filter((id) => id !== nodeId));
    await Promise.all(
      [...others].map(async (id) => {
        const link = this.#host.link(cluster.settings.members.indexOf(id));
        if (link === undefined) return;
        const answer = await transport
          .call(link, "view", { ...this.document(), begins: true }, tellTimeoutMs)
          .catch(() => undefined);
        if (!isRecord(answer)) return;
        if (answer["keeps"] !== true)
          refuse(`${id} was started without a file for views (--views-file FILE)`);
        if (answer["stamp"] === stamp && answer["consents"] !== false) agree.add(id);
      }),
    );
    for (const [members, which] of [
      [present, "present members"],
      [next.members, "members after the change"],
    ] as const) {
      const there = members.filter((id) => agree.has(id));
      if (there.length < majorityOf(members.length))
        refuse(
          `only ${there.length} of the ${members.length} ${which} are there, in this view, and consent to no other change: ${there.join(", ")}`,
        );
    }
  }
}

/** All members coordinate each resource as long as they are few; else cells stay as large as they are. */
function cellSizeAfter({ members, cellSize }: Membership, count: number): number {
  if (cellSize === members.length && cellSize < cellSizeDefaultMax)
    return Math.min(count, cellSizeDefaultMax);
  return Math.min(cellSize, count);
}

function refuse(why: string): never {
  throw new LeaseholdError("INVALID_CONFIG", `the members are not changed: ${why}`);
}
