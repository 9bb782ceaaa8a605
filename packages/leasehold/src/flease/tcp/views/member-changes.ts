import { LeaseholdError } from "../../../lease/errors.js";
import { isRecord } from "../../../common/json.js";
import { majorityOf } from "../../../common/majority.js";
import { parseAddress } from "../../../runtime/address.js";
import type { Reading } from "../../protocol/clock.js";
import { Consents } from "../../views/consents.js";
import { isDone, membersAfter, readChange, refuse } from "../../views/member-change.js";
import type { MemberChange, Waiting } from "../../views/member-change.js";
import { obstacleTo, readStanding } from "../../views/obstacles.js";
import type { Standing } from "../../views/obstacles.js";
import { memberIdsMax } from "../../protocol/settings.js";
import type { Membership } from "../../views/view.js";
import type { Link } from "../transport/link.js";
import { identityOf } from "../transport/identity-of.js";
import type { ViewsHost } from "./views-host.js";

/** Timeout for another participant's answer, ms. */
const askTimeoutMs = 1_000;

/**
 * A member's consent to one change excludes others for this long, ms: by then the change has begun and is
 * announced, or was given up.
 */
const consentMs = 4 * askTimeoutMs;

/** A joining member is dialed while a caller asks for it, and this much longer, ms. */
const comingMs = 4 * askTimeoutMs;

/** Maximum concurrent requests: each is the `leasehold member` command of some operator. */
const comingMax = 16;

/** The views of a participant, as seen by membership changes. */
export interface ChangesPort {
  /** Whether this member stores its view. */
  readonly keeps: boolean;
  isVoter(id: string): boolean;
  /** Begins a change. False when it could not be stored. */
  begin(next: Membership): boolean;
}

/**
 * A member's part in beginning a change: it begins one on request when all preconditions hold, and answers
 * other members that want to begin one. A change that has not begun is kept for seconds only: its caller
 * repeats the request until it begins.
 */
export class MemberChanges {
  readonly #host: ViewsHost;
  readonly #views: ChangesPort;
  readonly #consents = new Consents(consentMs, consentMs + askTimeoutMs);
  /** Joining members: their addresses, and until when they are dialed (steady). */
  readonly #coming = new Map<string, { readonly address: string; readonly untilMono: number }>();

  constructor(host: ViewsHost, views: ChangesPort) {
    this.#host = host;
    this.#views = views;
  }

  /** CALL `standing`: another member wants to begin a change. */
  answer(from: Link, params: unknown): object {
    if (from.role !== "member") throw new LeaseholdError("PERMISSION_DENIED", "only members ask that");
    const { begins, coming } = isRecord(params) ? params : {};
    const consents = begins !== true || this.#consentTo(from.peerId);
    return { ...this.#standing(coming), keeps: this.#views.keeps, consents, consentTo: this.#consents.to };
  }

  #standing(coming: unknown): Standing {
    const { peer, membership } = this.#host;
    const now = this.#host.now();
    const { acceptor, views } = peer;
    return {
      stamp: views.view.stamp,
      votes: acceptor?.ready === true && membership.duplicates.votes(now.mono),
      waitMs: acceptor?.recoveryWaitLeftMs(now) ?? 0,
      knowsComing: typeof coming === "string" && membership.duplicates.counts(coming),
    };
  }

  #consentTo(id: string): boolean {
    return this.#consents.give(id, this.#host.peer.views.view.stamp, this.#host.now().mono);
  }

  /** CALL `invite`: this participant is about to become a member. */
  invited(from: Link, params: unknown): object {
    if (from.role !== "member") throw new LeaseholdError("PERMISSION_DENIED", "only members invite");
    const number = isRecord(params) ? params["number"] : undefined;
    const { views } = this.#host.peer;
    const isPast = typeof number === "number" && !views.mayBeInvited(number);
    return { invited: typeof number === "number" && views.invite(number), isPast };
  }

  /**
   * CALL `change`: adds, removes or replaces a member. Answers at once that the change has begun, is over,
   * or waits for something; the caller asks again. Allowed only with a member's credentials: every other
   * caller could replace every member with its own.
   */
  async change(from: Link, params: unknown): Promise<Waiting | undefined> {
    if (!from.mayBeMember) {
      const who = identityOf(from);
      const text = `${who.by} (${who.name}) may not change the members`;
      this.#host.events.limited("permission-denied", `change ${who.by}`, text, { call: "change", ...who });
      throw new LeaseholdError(
        "PERMISSION_DENIED",
        "the members are changed with credentials of a member: its certificate, or a file with the member key alone",
      );
    }
    const change = readChange(params);
    if (change.address !== undefined) parseAddress(change.address);
    const { views } = this.#host.peer;
    const { view } = views;
    if (isDone(change, view, this.#addressOf)) return undefined;
    if (view.before !== undefined)
      return { code: "TIMEOUT", text: `another change is under way, from ${view.before.members.join(", ")}` };
    const next = membersAfter(change, view, this.#addressOf);
    const elsewhere = this.#whyElsewhere(next);
    if (elsewhere !== undefined) return elsewhere;
    if (!this.#views.keeps)
      refuse(`${this.#host.nodeId} was started without a file for views (--views-file FILE)`);
    const { add, address } = change;
    if (add !== undefined) {
      const there = this.#runningAt(address!);
      if (there !== undefined)
        return {
          code: "UNREACHABLE",
          text: `${there} still runs at ${address}: stop it, and start ${add} there`,
        };
      this.#dial(add, address!);
    }
    const waiting = await this.#whyNotNow(next, change);
    if (waiting !== undefined) return waiting;
    if (views.view.stamp !== view.stamp) return { code: "TIMEOUT", text: "another change has begun" };
    const elsewhereNow = this.#whyElsewhere(next);
    if (elsewhereNow !== undefined) return elsewhereNow;
    if (change.add !== undefined && !this.#host.cluster.learn(change.add, change.address!))
      refuse(`a cluster has at most ${memberIdsMax} members in its time`);
    if (!this.#views.begin(next))
      refuse(`${this.#host.nodeId} cannot write its file for views (--views-file FILE)`);
    this.#audit(change, from);
    return undefined;
  }

  #audit({ add, remove }: MemberChange, from: Link): void {
    const who = identityOf(from);
    const parts = [add !== undefined && `adds ${add}`, remove !== undefined && `removes ${remove}`];
    const text = `${who.by} (${who.name}) ${parts.filter((part) => part !== false).join(" and ")}`;
    const view = this.#host.peer.views.view.number;
    this.#host.events.log("members-changed", text, { view, added: add, removed: remove, ...who });
  }

  /**
   * Returns why this member cannot begin the change while another may.
   *
   * @throws LeaseholdError `INVALID_CONFIG` when none may
   */
  #whyElsewhere(next: Membership): Waiting | undefined {
    const { views } = this.#host.peer;
    const why = views.whyNoChange(next);
    if (why === undefined) return undefined;
    if (views.mayVote && !views.isLearner) refuse(why);
    return { code: "NO_QUORUM", text: why, elsewhere: true };
  }

  readonly #addressOf = (id: string): string | undefined => {
    const { settings, addresses } = this.#host.cluster;
    return addresses[settings.members.indexOf(id)];
  };

  /** A present member at this address; dialing another there would end the connection to it. */
  #runningAt(address: string): string | undefined {
    const { peer, nodeId } = this.#host;
    return peer.views.view.members.find(
      (id) => this.#addressOf(id) === address && (id === nodeId || this.#host.linkTo(id) !== undefined),
    );
  }

  #dial(id: string, address: string): void {
    if (!this.#coming.has(id) && this.#coming.size >= comingMax)
      refuse(`${comingMax} members are about to come already`);
    const before = this.#coming.get(id)?.address;
    if (before !== undefined && before !== address) this.#undial(before);
    this.#coming.set(id, { address, untilMono: this.#host.now().mono + comingMs });
    if (this.#host.role === "member") this.#host.transport.dial(address, id);
  }

  /** Call several times a second. */
  maintain({ mono }: Reading): void {
    for (const [id, { address, untilMono }] of this.#coming) {
      if (mono < untilMono) continue;
      this.#coming.delete(id);
      if (!this.#views.isVoter(id) || this.#addressOf(id) !== address) this.#undial(address);
    }
  }

  #undial(address: string): void {
    this.#host.transport.undial(address);
    // A present member may have the same address: dial it again.
    this.#host.dialMembers();
  }

  /**
   * Asks all participants of the change for their state, then for consent, and invites the joining member.
   */
  async #whyNotNow(next: Membership, { add }: MemberChange): Promise<Waiting | undefined> {
    const { nodeId } = this.#host;
    const { view } = this.#host.peer.views;
    const others = new Set([...view.members, ...next.members].filter((id) => id !== nodeId));
    const answers = await this.#askAll(others, { coming: add });
    for (const [id, answer] of answers)
      if (answer["keeps"] !== true) refuse(`${id} was started without a file for views (--views-file FILE)`);
    const standings = new Map([...answers].map(([id, answer]) => [id, readStanding(answer)]));
    standings.set(nodeId, this.#standing(add));
    const obstacle = obstacleTo(view, next, standings);
    if (obstacle !== undefined) return obstacle;
    const askedMono = this.#host.now().mono;
    const refused = await this.#whyNoConsent(others, next, add);
    if (refused !== undefined) return refused;
    const late = add === undefined ? undefined : await this.#invite(add, view.number + 1);
    if (late !== undefined) return late;
    // The other members need the rest of the time to hear of the change before they consent to another.
    const isInTime = this.#host.now().mono - askedMono <= consentMs / 2;
    // Another change on this member may have yielded meanwhile.
    return isInTime && this.#consents.to === nodeId
      ? undefined
      : { code: "TIMEOUT", text: "the members took too long to consent" };
  }

  /** Asks majorities of the members before and after for consent. */
  async #whyNoConsent(
    others: ReadonlySet<string>,
    next: Membership,
    add: string | undefined,
  ): Promise<Waiting | undefined> {
    const { nodeId } = this.#host;
    const { view } = this.#host.peer.views;
    const isFirst = (id: string): Waiting => ({ code: "TIMEOUT", text: `${id} is beginning another change` });
    const first = this.#consents.goesFirst(this.#host.now().mono);
    if (first !== undefined) return isFirst(first);
    if (!this.#consentTo(nodeId)) return isFirst(this.#consents.to);
    const agreed = new Set([nodeId]);
    for (const [id, answer] of await this.#askAll(others, { coming: add, begins: true })) {
      const { stamp, consents, consentTo } = answer;
      if (stamp !== view.stamp) continue;
      if (consents === true) agreed.add(id);
      else if (typeof consentTo === "string" && consentTo < nodeId)
        this.#consents.standBack(consentTo, this.#host.now().mono);
    }
    for (const members of [view.members, next.members])
      if (members.filter((id) => agreed.has(id)).length < majorityOf(members.length))
        return { code: "TIMEOUT", text: "members have given their consent to another change" };
    return undefined;
  }

  /** MUST follow the consents: they prove that a majority is in the present view, without this member. */
  async #invite(id: string, number: number): Promise<Waiting | undefined> {
    const link = this.#host.linkTo(id);
    const answer = link && (await this.#ask(link, "invite", { number }));
    if (answer === undefined) return { code: "UNREACHABLE", text: `${id} is not connected` };
    if (answer["isPast"] === true)
      return { code: "TIMEOUT", text: `${id} already knows of another change: the members are told of it` };
    if (answer["invited"] !== true) refuse(`${id} cannot write its file for views (--views-file FILE)`);
    return undefined;
  }

  async #askAll(
    ids: Iterable<string>,
    more: object,
  ): Promise<Map<string, Readonly<Record<string, unknown>>>> {
    const answers = new Map<string, Readonly<Record<string, unknown>>>();
    await Promise.all(
      [...ids].map(async (id) => {
        const link = this.#host.linkTo(id);
        const answer = link && (await this.#ask(link, "standing", more));
        if (answer !== undefined) answers.set(id, answer);
      }),
    );
    return answers;
  }

  async #ask(
    link: Link,
    method: string,
    params: object,
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    const answer = await this.#host.transport.call(link, method, params, askTimeoutMs).catch(() => undefined);
    return isRecord(answer) ? answer : undefined;
  }
}
