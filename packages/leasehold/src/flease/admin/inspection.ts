import { LeaseholdError } from "../../lease/errors.js";
import type { Inspection, Watching } from "../../lease/provider.js";
import { dataField } from "../../lease/tenure-data.js";
import type { Explanation, HolderAction, JsonValue, ResourceHint } from "../../lease/types.js";
import type { CellMap } from "../protocol/cells.js";
import { votersOf } from "../protocol/views.js";
import { reasonsOf } from "./explaining.js";
import { hintOf } from "./hints.js";
import { listFrom, memberAnswerFrom } from "./admin-answers.js";
import type { MergedLease } from "./listing.js";
import { MergedListing } from "./listing.js";
import type { AdminDriver } from "./driver.js";
import { ClusterWatch, isTooWide } from "./watching.js";
import type { Cell } from "../protocol/quorum.js";
import { timeLeft } from "../../common/time-left.js";
import { mapInTurns } from "../../common/in-turns.js";
import { greatest } from "../../common/lists.js";
import { majorityOf } from "../../common/majority.js";
import { WatchSet } from "../../lease/watch-set.js";

/**
 * A million leases, what a member keeps by default, and an empty page after them. Where it is set to keep
 * more, a list of more fails.
 */
const pagesMax = 4_001;

interface CellAnswer {
  readonly member: number;
  readonly value?: unknown;
  readonly error?: unknown;
}

interface Explained {
  readonly explanation: Explanation;
  /** The owner of the unfinished lease with the greatest token, if a member knows of one. */
  readonly owner: string | undefined;
}

/**
 * Watching and asking among peers: everything here goes over admin RPCs, beside the protocol, and changes no
 * lease.
 */
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
    told: (hint: ResourceHint) => void,
    failed: (error: LeaseholdError) => void,
  ): Watching {
    const newSession = () => (this.#lastSession += 1);
    const watch = new ClusterWatch(this.#driver, this.#cells, prefix, told, failed, newSession);
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
    // What a member told before it was lost counts as well: it was true.
    const merged = new MergedListing();
    const listings = await Promise.allSettled(
      everybody.map((member) => this.#listAt(member, prefix, timeoutMs, merged)),
    );
    const heard = listings.filter((listing) => listing.status === "fulfilled");
    const missing = everybody.filter((_, index) => listings[index]!.status === "rejected");
    // As long as fewer are missing than make a majority impossible, no cell can have lost too many.
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
    return mapInTurns(merged.leases, hintFrom, world.timers);
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

  /** What the owner of this tenure lets others read, as far as they say so at once. */
  async dataOf(resource: string, token: bigint, timeoutMs: number): Promise<{ readonly data?: JsonValue }> {
    const { explanation } = await this.#explain(resource, timeoutMs);
    const { data } = explanation;
    return explanation.token === token && data !== undefined ? { data } : {};
  }

  async requestRelease(resource: string, timeoutMs: number): Promise<HolderAction> {
    const leftMs = this.#timeLeft(timeoutMs);
    const { cell, owner, action } = await this.#holding(resource, timeoutMs);
    if (owner === undefined) return action;
    const answers = await this.#askCell(cell, "requestRelease", { resource, owner }, leftMs());
    return { ...action, done: countTrue(answers) > 0 };
  }

  async favour(resource: string, to: string, timeoutMs: number): Promise<boolean> {
    const cell = this.#cells.of(resource);
    const answers = await this.#askCell(cell, "favour", { resource, to }, timeoutMs);
    if (answers.every(({ error }) => error !== undefined)) throw this.#noQuorum("no member answered");
    return countTrue(answers) >= cell.majority;
  }

  async breakLease(resource: string, timeoutMs: number): Promise<HolderAction> {
    const leftMs = this.#timeLeft(timeoutMs);
    const { cell, owner, action } = await this.#holding(resource, timeoutMs);
    if (owner === undefined) return action;
    const answers = await this.#askCell(cell, "break", { resource, owner }, leftMs());
    // Only now: a holder that obeys would release the lease while some are still being told of the bar.
    await this.#askCell(cell, "requestRelease", { resource, owner, broken: true }, leftMs());
    return { ...action, done: countTrue(answers) > cell.members.length - cell.majority };
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

  /** @throws LeaseholdError `NO_QUORUM` when too few answer to say who holds the resource. */
  async #holding(
    resource: string,
    timeoutMs: number,
  ): Promise<{ cell: Cell; owner: string | undefined; action: HolderAction }> {
    const cell = this.#cells.of(resource);
    const { explanation, owner } = await this.#explain(resource, timeoutMs);
    if (!explanation.quorum) throw this.#noQuorum(explanation.reasons.join("; "));
    const { holder, token, remainingMs } = explanation;
    const known = holder === undefined ? {} : { holder, token: token!, remainingMs: remainingMs! };
    return { cell, owner, action: { done: false, ...known } };
  }

  async #explain(resource: string, timeoutMs: number): Promise<Explained> {
    const cell = this.#cells.of(resource);
    const answers = await this.#askCell(cell, "explain", { resource }, timeoutMs);
    const { wall } = this.#driver.runner.now();
    const { members, ttlMaxMs } = this.#driver.runner.peer.settings;
    const told = answers.map(({ member, value, error }) =>
      memberAnswerFrom(members[member]!, this.#driver.address(member), value, error, { wall, ttlMaxMs }),
    );
    const views = told.map(({ view }) => view);
    const ready = views.filter(({ state }) => state === "ready").length;
    const live = views.filter(({ lease }) => lease?.state === "live");
    const [holding] = live.toSorted((one, other) => Number(other.lease!.token - one.lease!.token));
    const lease = holding?.lease;
    const same = live.filter(
      (one) => one.lease!.token === lease?.token && one.lease!.holder === lease.holder,
    );
    const barred = views.filter((view) => lease !== undefined && view.barred === lease.holder).length;
    const quorum = ready >= cell.majority;
    const state = lease !== undefined ? "held" : quorum ? "free" : "unknown";
    const label = told.find(({ view }) => view === holding)?.label;
    const data = told.find((one) => one.data !== undefined && same.includes(one.view))?.data;
    const explanation: Omit<Explanation, "reasons"> = {
      resource,
      state,
      quorum,
      broken: barred > cell.members.length - cell.majority,
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

  async #askCell(cell: Cell, method: string, params: object, timeoutMs: number): Promise<CellAnswer[]> {
    const answers = cell.members.map((member) =>
      this.#driver.ask(member, method, params, timeoutMs).then(
        (value): CellAnswer => ({ member, value }),
        (error: unknown): CellAnswer => ({ member, error }),
      ),
    );
    const settled = await Promise.all(answers);
    // What a member forbids is no question of how many answered.
    for (const { error } of settled)
      if (error instanceof LeaseholdError && error.code === "PERMISSION_DENIED") throw error;
    return settled;
  }
}

function countTrue(answers: readonly CellAnswer[]): number {
  return answers.filter(({ value }) => value === true).length;
}
