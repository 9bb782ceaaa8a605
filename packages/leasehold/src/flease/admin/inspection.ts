import { LeaseholdError } from "../../lease/errors.js";
import type { Inspection, Watching } from "../../lease/provider.js";
import { dataField } from "../../lease/tenure-data.js";
import type { Explanation, HolderAction, JsonValue, MemberView, ResourceHint } from "../../lease/types.js";
import type { CellMap } from "../protocol/cells.js";
import { votersOf } from "../views/view.js";
import { reasonsOf } from "./explaining.js";
import { hintOf } from "./hints.js";
import { listFrom, memberAnswerFrom } from "./admin-answers.js";
import type { MergedLease } from "./listing.js";
import { MergedListing } from "./listing.js";
import type { AdminDriver } from "./driver.js";
import { ClusterWatch, isTooWide } from "./watching.js";
import { excludesQuorumFromNowOn } from "../protocol/quorum.js";
import type { Cell } from "../protocol/quorum.js";
import { timeLeft } from "../../common/time-left.js";
import { mapInChunks } from "../../common/chunks.js";
import { greatest } from "../../common/lists.js";
import { majorityOf } from "../../common/majority.js";
import { WatchSet } from "../../lease/watch-set.js";

/**
 * Maximum number of pages of a list: a million leases, the default bound of a member, and an empty page after
 * them. A longer list, from a member with a greater bound, fails.
 */
const pagesMax = 4_001;

interface CellAnswer {
  readonly member: number;
  readonly value?: unknown;
  readonly error?: unknown;
}

interface Explained {
  readonly explanation: Explanation;
  /** The owner of the unfinished lease with the greatest token, if a member knows one. */
  readonly owner: string | undefined;
}

/** Inspection among peers: all calls are admin RPCs, outside the protocol, and change no lease. */
export class FleaseInspection implements Inspection {
  readonly #driver: AdminDriver;
  readonly #cells: CellMap;
  readonly #watches = new WatchSet();
  #lastSession = 0;

  constructor(driver: AdminDriver) {
    this.#driver = driver;
    this.#cells = { of: (resource) => driver.runner.peer.cells.of(resource) };
  }

  watch(
    prefix: string,
    report: (hint: ResourceHint) => void,
    failed: (error: LeaseholdError) => void,
  ): Watching {
    const newSession = () => (this.#lastSession += 1);
    const watch = new ClusterWatch(this.#driver, this.#cells, prefix, report, failed, newSession);
    watch.begin();
    return this.#watches.add(watch);
  }

  /** @throws LeaseholdError `NO_QUORUM`, `WATCH_TOO_WIDE` */
  async list(
    prefix: string,
    timeoutMs: number,
    onIncomplete: ((why: string) => void) | undefined,
  ): Promise<ResourceHint[]> {
    const { settings, views } = this.#driver.runner.peer;
    const { members } = settings;
    const { cellSize } = views.view;
    const voters = votersOf(views.view);
    const everybody = voters.map((id) => members.indexOf(id));
    // Reports of a member before its loss also count: they were true.
    const merged = new MergedListing();
    const listings = await Promise.allSettled(
      everybody.map((member) => this.#listAt(member, prefix, timeoutMs, merged)),
    );
    const heard = listings.filter((listing) => listing.status === "fulfilled");
    const missing = everybody.filter((_, index) => listings[index]!.status === "rejected");
    // While fewer members are missing than prevent a majority, no cell can have lost too many.
    const sparable = cellSize - majorityOf(cellSize);
    if (missing.length > sparable) {
      const why = `${heard.length} of the ${voters.length} members answered; missing: ${missing.map((member) => members[member]).join(", ")}`;
      const reasons = listings.map((listing) => (listing.status === "rejected" ? listing.reason : undefined));
      if (onIncomplete === undefined || heard.length === 0)
        throw reasons.find(isTooWide) ?? this.#noQuorum(why);
      onIncomplete(`${why}; resources of which most members are missing may not be listed`);
    }
    const { peer, world } = this.#driver.runner;
    const { wall } = this.#driver.runner.now();
    const hintFrom = ({ lease, votes }: MergedLease) => {
      const confirmed = votes >= this.#cells.of(lease.resource).majority;
      return Object.assign(hintOf(lease, wall, peer.settings.ttlMaxMs), { confirmed });
    };
    return mapInChunks(merged.leases, hintFrom, world.timers);
  }

  async #listAt(member: number, prefix: string, timeoutMs: number, into: MergedListing): Promise<void> {
    const leftMs = this.#timeLeft(timeoutMs);
    const session = (this.#lastSession += 1);
    for (let page = 0; page < pagesMax; page += 1) {
      const answer = await this.#driver.ask(member, "list", { session, prefix, page }, leftMs());
      const { held, more } = listFrom(answer);
      into.add(held);
      if (!more) return;
    }
    throw new LeaseholdError("WATCH_TOO_WIDE", `a member has more than ${pagesMax} pages below the prefix`);
  }

  async explain(resource: string, timeoutMs: number): Promise<Explanation> {
    return (await this.#explain(resource, timeoutMs)).explanation;
  }

  /** The owner's public data of this tenure, from members that answer at once. */
  async dataOf(resource: string, token: bigint, timeoutMs: number): Promise<{ readonly data?: JsonValue }> {
    const { explanation } = await this.#explain(resource, timeoutMs);
    const { data } = explanation;
    return explanation.token === token && data !== undefined ? { data } : {};
  }

  async requestRelease(resource: string, timeoutMs: number): Promise<HolderAction> {
    const leftMs = this.#timeLeft(timeoutMs);
    const { cell, owner, action } = await this.#holding(resource, timeoutMs);
    if (owner === undefined) return action;
    return { ...action, done: await this.#askToRelease(cell, { resource, owner }, leftMs()) };
  }

  /** True as soon as one member reports that the owner was notified. */
  async #askToRelease(cell: Cell, params: object, timeoutMs: number): Promise<boolean> {
    const isTold = (answers: readonly CellAnswer[]) => answers.some(({ value }) => value === true);
    return isTold(await this.#askCell(cell, "requestRelease", params, timeoutMs, isTold));
  }

  async favour(resource: string, to: string, timeoutMs: number): Promise<boolean> {
    const cell = this.#cells.of(resource);
    const answers = await this.#askCell(cell, "favour", { resource, to }, timeoutMs);
    if (answers.every(({ error }) => error !== undefined)) throw this.#noQuorum("no member answered");
    return countTrue(answers) >= cell.majority;
  }

  async breakLease(resource: string, timeoutMs: number): Promise<HolderAction> {
    const { views, settings } = this.#driver.runner.peer;
    const leftMs = this.#timeLeft(timeoutMs);
    const view = views.view.stamp;
    const { cell, owner, action } = await this.#holding(resource, timeoutMs);
    if (owner === undefined) return action;
    const isDone = (answers: readonly CellAnswer[]) => {
      const barring = answers.filter(({ value }) => value === true).map(({ member }) => member);
      return excludesQuorumFromNowOn(
        cell,
        setWhere(cell.members, (member) => barring.includes(member)),
      );
    };
    // MUST name the view: in a later one the members that answered may exclude no quorum. A member keeps a
    // bar until the others have it and the lease has run out.
    const barTimeoutMs = Math.min(leftMs(), settings.ttlMaxMs);
    const answers = await this.#askCell(cell, "break", { resource, owner, view }, barTimeoutMs, isDone);
    const done = isDone(answers);
    // Only now: a holder that obeys would release the lease while some members lack the bar.
    const asked = this.#askToRelease(cell, { resource, owner, broken: true }, leftMs());
    const remainingMs = done ? await this.#endOfBroken(resource, owner, leftMs()) : action.remainingMs!;
    await asked;
    return { ...action, done, remainingMs };
  }

  /**
   * Upper bound of the remaining time of a lease that can no longer be renewed, ms: it may have been renewed
   * a moment ago.
   */
  async #endOfBroken(resource: string, owner: string, timeoutMs: number): Promise<number> {
    const { explanation, owner: holder } = await this.#explain(resource, timeoutMs, isKnown);
    if (!explanation.quorum) return this.#driver.runner.peer.settings.ttlMaxMs;
    return holder === owner ? explanation.remainingMs! : 0;
  }

  close(): void {
    this.#watches.close();
  }

  #timeLeft(timeoutMs: number): () => number {
    return timeLeft(() => this.#driver.runner.now().mono, timeoutMs);
  }

  #noQuorum(why: string): LeaseholdError {
    return this.#driver.refusal() ?? new LeaseholdError("NO_QUORUM", why);
  }

  /** @throws LeaseholdError `NO_QUORUM` when too few members answer to determine the holder. */
  async #holding(
    resource: string,
    timeoutMs: number,
  ): Promise<{ cell: Cell; owner: string | undefined; action: HolderAction }> {
    const cell = this.#cells.of(resource);
    // Leaves time for later steps when a member does not answer.
    const { explanation, owner } = await this.#explain(resource, timeoutMs / 2, isKnown);
    if (!explanation.quorum) throw this.#noQuorum(explanation.reasons.join("; "));
    const { holder, token, remainingMs } = explanation;
    const known = holder === undefined ? {} : { holder, token: token!, remainingMs: remainingMs! };
    return { cell, owner, action: { done: false, ...known } };
  }

  /** @param isEnough whether these answers suffice; otherwise all of the cell are awaited */
  async #explain(
    resource: string,
    timeoutMs: number,
    isEnough?: (cell: Cell, views: readonly MemberView[]) => boolean,
  ): Promise<Explained> {
    const cell = this.#cells.of(resource);
    const { wall } = this.#driver.runner.now();
    const { members, ttlMaxMs } = this.#driver.runner.peer.settings;
    const toldBy = (answers: readonly CellAnswer[]) =>
      cell.members.map((member) => {
        const { value, error } = answers.find((answer) => answer.member === member) ?? noAnswer;
        const address = this.#driver.address(member);
        return memberAnswerFrom(members[member]!, address, value, error, { wall, ttlMaxMs });
      });
    const viewsOf = (answers: readonly CellAnswer[]) => toldBy(answers).map(({ view }) => view);
    const told = toldBy(
      await this.#askCell(cell, "explain", { resource }, timeoutMs, (answers) =>
        isEnough === undefined ? false : isEnough(cell, viewsOf(answers)),
      ),
    );
    const views = told.map(({ view }) => view);
    const ready = views.filter(({ state }) => state === "ready").length;
    const { holding, same } = holdingIn(cell, views);
    const lease = holding?.lease;
    const barred = setWhere(views, ({ barred }) => lease !== undefined && barred === lease.holder);
    const quorum = ready >= cell.majority;
    const state = lease !== undefined ? "held" : quorum ? "free" : "unknown";
    const label = told.find(({ view }) => view === holding)?.label;
    const data = told.find((one) => one.data !== undefined && same.includes(one.view))?.data;
    const explanation: Omit<Explanation, "reasons"> = {
      resource,
      state,
      quorum,
      broken: excludesQuorumFromNowOn(cell, barred),
      waiting: greatest(
        views.map(({ waiting }) => waiting ?? 0),
        0,
      ),
      members: views,
      confirmed: lease === undefined ? quorum : same.length >= cell.majority,
      ...(lease !== undefined && {
        holder: lease.holder,
        token: lease.token,
        remainingMs: greatest(same.map((one) => one.lease!.remainingMs)),
      }),
      ...(label !== undefined && { label }),
      ...dataField(data),
    };
    return { explanation: { ...explanation, reasons: reasonsOf(explanation) }, owner: lease?.holder };
  }

  /**
   * Asks all members of a cell. Resolves when all have answered or the answers suffice, without waiting for
   * an unresponsive member.
   *
   * @throws LeaseholdError `PERMISSION_DENIED`: a refusal for lack of permission does not depend on the
   *   number of answers
   */
  #askCell(
    cell: Cell,
    method: string,
    params: object,
    timeoutMs: number,
    isEnough: (answers: readonly CellAnswer[]) => boolean = () => false,
  ): Promise<CellAnswer[]> {
    return new Promise((resolve, reject) => {
      const answers: CellAnswer[] = [];
      const answered = (answer: CellAnswer) => {
        answers.push(answer);
        if (answers.length === cell.members.length || isEnough(answers)) resolve([...answers]);
      };
      for (const member of cell.members)
        this.#driver.ask(member, method, params, timeoutMs).then(
          (value) => answered({ member, value }),
          (error: unknown) => {
            if (error instanceof LeaseholdError && error.code === "PERMISSION_DENIED") reject(error);
            else answered({ member, error });
          },
        );
    });
  }
}

const noAnswer = { value: undefined, error: new Error("it has not answered yet") };

/** A set of positions in a cell, as a bit mask. */
function setWhere<T>(cell: readonly T[], isIn: (each: T) => boolean): number {
  return cell.reduce((set, each, at) => (isIn(each) ? set | (1 << at) : set), 0);
}

/** The lease that a majority reports; otherwise the newest of the unfinished leases. */
function holdingIn({ majority }: Cell, views: readonly MemberView[]) {
  const live = views.filter(({ lease }) => lease?.state === "live");
  const votesFor = ({ lease }: MemberView) =>
    live.filter((one) => one.lease!.token === lease!.token && one.lease!.holder === lease!.holder);
  const [newest] = live.toSorted((one, other) => Number(other.lease!.token - one.lease!.token));
  const holding = live.find((view) => votesFor(view).length >= majority) ?? newest;
  return { holding, same: holding === undefined ? [] : votesFor(holding) };
}

/** Whether enough members are ready to determine the holder, or that there is none. */
function isKnown(cell: Cell, views: readonly MemberView[]): boolean {
  if (views.filter(({ state }) => state === "ready").length < cell.majority) return false;
  const { holding, same } = holdingIn(cell, views);
  return holding === undefined || same.length >= cell.majority;
}

function countTrue(answers: readonly CellAnswer[]): number {
  return answers.filter(({ value }) => value === true).length;
}
