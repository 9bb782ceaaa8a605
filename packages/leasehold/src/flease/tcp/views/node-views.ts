import { LeaseholdError } from "../../../lease/errors.js";
import { isAddress } from "../../../runtime/address.js";
import type { PeerViews } from "../../peer.js";
import type { Reading } from "../../protocol/clock.js";
import { memberIdsMax } from "../../protocol/settings.js";
import { firstView, viewAtFirstStart, votersOf } from "../../views/view.js";
import type { ClusterState, KeptView, View } from "../../views/view.js";
import { MemberChanges } from "./member-changes.js";
import type { ViewStatus } from "../../views/member-change.js";
import type { Link } from "../transport/link.js";
import { readPublishedView, readViewOffer, writePublishedView } from "../../views/document.js";
import type { ViewFile } from "./view-file.js";
import type { PublishedView } from "../../views/document.js";
import { ViewPublisher } from "./view-publisher.js";
import type { ViewsHost } from "./views-host.js";

/** Time to wait for a view that one member was asked for before asking another, ms. */
const askPatienceMs = 300;

/** Retry delay after a view that could not be accepted, ms. */
const refusedViewMs = 10_000;

/** Storage of a member's view, and the initial view where nothing is stored. */
export interface ViewKeeping {
  readonly file: Pick<ViewFile, "read" | "write" | "path">;
  readonly state: ClusterState | undefined;
}

/** Exchanges views with other participants. */
export class NodeViews {
  readonly #host: ViewsHost;
  readonly #file: Pick<ViewFile, "read" | "write" | "path"> | undefined;
  readonly #begin: KeptView;
  readonly #changes: MemberChanges;
  #voterStamp = 0;
  #voterIds: ReadonlySet<string> = new Set();
  readonly #publisher: ViewPublisher;
  #publishedStamp = 0;
  #complained = false;
  /** Asks for no view before this time (steady). */
  #asksFromMono = -Infinity;

  /**
   * @throws LeaseholdError `INVALID_CONFIG` for an unreadable file, or a missing one where the options do
   * not say whether the cluster is new.
   */
  constructor(host: ViewsHost, keeping: ViewKeeping | undefined) {
    this.#host = host;
    this.#file = keeping?.file;
    const { settings, foundedBy, current } = host.cluster;
    // Without members that are merely known, such as one about to be added.
    const first = firstView({ ...settings, members: settings.members.slice(0, foundedBy) });
    const kept = keeping?.file.read() ?? current;
    if (kept !== undefined) this.#learn(kept.addresses);
    this.#begin =
      kept ?? (keeping === undefined ? { view: first, barrier: 0 } : this.#firstStart(first, keeping));
    this.#publisher = new ViewPublisher(host, () => this.document());
    this.#changes = new MemberChanges(host, {
      keeps: this.#file !== undefined,
      isVoter: (id) => this.isVoter(id),
      begin: (next) => {
        const begun = host.peer.changeMembers(next, host.now());
        if (begun) this.#entered();
        return begun;
      },
    });
  }

  #firstStart(first: View, { file, state }: ViewKeeping): KeptView {
    const isNamed = first.members.includes(this.#host.nodeId);
    if (isNamed && state === undefined)
      throw new LeaseholdError(
        "INVALID_CONFIG",
        `there is no views file ${file.path}. If the cluster is new, start each of its members with --initial-cluster-state new (initialClusterState: "new"). If the file was lost, start this one with "existing": then it has no vote before it is removed and added again`,
      );
    if (isNamed && state === "existing")
      this.#host.events.log(
        "views-missing",
        "no vote: the views file is missing; remove this member and add it again",
        { file: file.path },
      );
    return viewAtFirstStart(first, isNamed && state === "new" ? "new" : "existing");
  }

  /** The peer's access to views. A participant without a vote goes back at a restart, which is safe. */
  port(): PeerViews {
    const { nodeId, role } = this.#host;
    const isMember = role === "member";
    return { id: isMember ? nodeId : "", kept: this.#begin, keep: (kept) => !isMember || this.#keep(kept) };
  }

  #keep(kept: KeptView): boolean {
    try {
      if (this.#file === undefined) throw new Error("it was started without a file for views");
      this.#file.write({ ...kept, addresses: this.#addressesOf(votersOf(kept.view)) });
      this.#complained = false;
      return true;
    } catch (cause) {
      const error = (cause as Error).message;
      const text = `this member cannot take part in a change, and has no vote: ${error}`;
      if (!this.#complained) this.#host.events.log("views-unwritable", text, { error });
      this.#complained = true;
      return false;
    }
  }

  /** False when the lists are full. */
  #learn(addresses: Readonly<Record<string, string>>): boolean {
    return Object.entries(addresses).every(([id, address]) => this.#host.cluster.learn(id, address));
  }

  #addressesOf(ids: readonly string[]): Record<string, string> {
    const { settings, addresses } = this.#host.cluster;
    const index = new Map(settings.members.map((id, at) => [id, at]));
    return Object.fromEntries(ids.map((id) => [id, addresses[index.get(id)!]!]));
  }

  /** Voters, by index. */
  voters(): number[] {
    const { members } = this.#host.cluster.settings;
    return votersOf(this.#host.peer.views.view).map((id) => members.indexOf(id));
  }

  /** Called for each batch of a member. */
  isVoter(id: string): boolean {
    const { view } = this.#host.peer.views;
    if (view.stamp !== this.#voterStamp) {
      this.#voterStamp = view.stamp;
      this.#voterIds = new Set(votersOf(view));
    }
    return this.#voterIds.has(id);
  }

  #published(): PublishedView {
    const note = this.#host.peer.views.note();
    return { ...note, addresses: this.#addressesOf(votersOf(note.view)) };
  }

  /** The view as sent to participants, and to clients in the description of the cluster. */
  document(): object {
    return writePublishedView(this.#published());
  }

  /** On a new connection each side offers its view to the other, so that neither stays behind. */
  connected(link: Link): void {
    this.#publisher.offer(link);
  }

  /** CALL `view`: a member offers or sends its view. */
  heard(from: Link, params: unknown): object {
    if (from.role !== "member") throw new LeaseholdError("PERMISSION_DENIED", "only members send views");
    const { peer } = this.#host;
    const now = this.#host.now();
    const offer = readViewOffer(params, peer.views.view);
    if (offer !== undefined) {
      peer.hearView({ ...peer.views.note(), settled: offer.settled }, now);
      return { stamp: peer.views.view.stamp, wants: this.#wants(offer.number, now) };
    }
    const published = readPublishedView(params, isAddress);
    if (published.view.number > peer.views.view.number && !this.#learn(published.addresses))
      this.#refuseView(now);
    if (peer.hearView(published, now)) this.#entered();
    else if (published.view.number > peer.views.view.number) this.#asksFromMono = now.mono + refusedViewMs;
    return { stamp: peer.views.view.stamp };
  }

  /**
   * Only one of the members that offer a newer view is asked for it; another one is asked if that member does
   * not send it.
   */
  #wants(number: number, { mono }: Reading): boolean {
    const isOfUse = number > this.#host.peer.views.view.number && mono >= this.#asksFromMono;
    if (isOfUse) this.#asksFromMono = mono + askPatienceMs;
    return isOfUse;
  }

  #refuseView({ mono }: Reading): never {
    const why = `the members have changed, and this process has met ${memberIdsMax} ids of members, and no more: restart it`;
    this.#asksFromMono = mono + refusedViewMs;
    if (!this.#complained) this.#host.events.log("views-full", why, {});
    this.#complained = true;
    throw new LeaseholdError("CONFIG_MISMATCH", why);
  }

  /** Call several times a second. */
  maintain(now: Reading): void {
    const { view } = this.#host.peer.views;
    this.#changes.maintain(now);
    if (this.#publishedStamp === 0) this.#publishedStamp = view.stamp;
    if (view.stamp !== this.#publishedStamp) this.#entered();
    else this.#publisher.maintain(now);
  }

  #entered(): void {
    const { peer } = this.#host;
    const { view } = peer.views;
    this.#publishedStamp = view.stamp;
    const kind = view.before === undefined ? "view" : "joint view";
    const members = votersOf(view).join(", ");
    const fields = { view: view.number, members, joint: view.before !== undefined };
    this.#host.events.log("view-entered", `${kind} ${view.number}: ${members}`, fields);
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

  /** Answers calls about views; undefined for any other call. */
  answer(from: Link, method: string, params: unknown): unknown {
    if (method === "view") return this.heard(from, params);
    if (method === "members") return this.status();
    if (method === "standing") return this.#changes.answer(from, params);
    if (method === "invite") return this.#changes.invited(from, params);
    return method === "change" ? this.change(from, params) : undefined;
  }

  async change(from: Link, params: unknown): Promise<ViewStatus> {
    const waiting = await this.#changes.change(from, params);
    return { ...this.status(), ...(waiting && { waiting }) };
  }
}
