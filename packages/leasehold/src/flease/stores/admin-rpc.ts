import type { Protocol } from "../../delta/effects.js";
import { listedLease } from "../admin/listing.js";
import type { ListedLease } from "../admin/listing.js";
import { adminParamsOf, answerOn } from "../admin/admin-answers.js";
import type { ResourceAnswer } from "../admin/admin-answers.js";
import type { FeedPage } from "../admin/watch-feed.js";
import { watchHoldMs } from "../admin/watching.js";
import { LeaseholdError } from "../../lease/errors.js";
import { Pauses } from "../../common/pauses.js";
import type { Timers } from "../../common/ports.js";
import { entryRegister, resourceOf } from "./registers.js";
import { ask } from "./ask.js";
import { revise, seenIn } from "./visit.js";
import type { Revision, Visiting } from "./visit.js";

/** Maximum number of registers of one store that a list reads, including those of free resources. */
const listedMax = 100_000;

/** Minimum interval of lists for a watch, ms: each reads everything below its prefix. */
const watchEveryMsMin = 100;

/**
 * Pause between two lists of a watch, as a multiple of a list's duration: with many resources, a watch
 * reports later.
 */
const restFactor = 4;

/** Records read before yielding to other work of this process: one or two milliseconds. */
const looksPerTurn = 500;

export interface StoreAdminOptions {
  readonly visiting: Visiting;
  readonly run: <T>(protocol: Protocol<T>) => Promise<T>;
  readonly timers: Timers;
  readonly pollMs: number;
  /** The requesting participant's name, as shown to the holder. */
  readonly by: () => string;
}

/** One store's leases as reported to a watch: by resource, owner and token. */
type Told = Map<string, { readonly owner: string; readonly token: number }>;

/**
 * Admin RPCs on stores. Stores cannot answer them, so the caller reads the records. A watch polls for
 * changes, and a request to the holder stays in the record until the holder renews.
 */
export class StoreAdminRpc {
  readonly #options: StoreAdminOptions;
  /** By store and session. */
  readonly #watches = new Map<string, Told>();
  readonly #pauses: Pauses;
  #isClosed = false;

  constructor(options: StoreAdminOptions) {
    this.#options = options;
    this.#pauses = new Pauses(options.timers);
  }

  async answer(store: number, method: string, given: object, timeoutMs: number): Promise<unknown> {
    const { resource, owner, prefix, session, broken } = adminParamsOf(given);
    switch (method) {
      case "list":
        return { held: await this.#list(store, prefix), more: false };
      case "explain":
        return this.#explain(store, resource);
      case "break":
        return this.#break(store, resource, owner);
      case "requestRelease":
        return this.#requestRelease(store, resource, owner, broken, timeoutMs);
      case "watch":
        return this.#watch(store, session, prefix);
      case "unwatch":
        return this.#watches.delete(`${store}/${session}`);
      default:
        throw new Error(`assertion failed: ${method} is no admin RPC`);
    }
  }

  /** Ends pending calls. */
  close(): void {
    this.#isClosed = true;
    this.#watches.clear();
    this.#pauses.end();
  }

  async #list(store: number, prefix: string): Promise<ListedLease[]> {
    const { visiting, run } = this.#options;
    const { acceptor } = visiting;
    const request = { op: "list", prefix: entryRegister(prefix), registersMax: listedMax } as const;
    const answer = await run(ask(visiting, store, request));
    if (answer?.kind === "failed") throw answer.error;
    if (answer?.kind !== "registers")
      throw new LeaseholdError("STORE_UNAVAILABLE", "a store did not list in time");
    if (answer.registers.size >= listedMax)
      throw new LeaseholdError(
        "WATCH_TOO_WIDE",
        `a store has ${listedMax} resources or more below the prefix`,
      );
    const listed: ListedLease[] = [];
    let looked = 0;
    for (const [register, cells] of answer.registers) {
      looked += 1;
      if (looked % looksPerTurn === 0) await this.#pauses.pause(0);
      const resource = resourceOf(register);
      // Unreadable records are skipped in lists; `explain` and `acquire` report them.
      const seen = seenIn(visiting, { kind: "cells", id: answer.id, cells }, resource);
      if ("error" in seen || seen.record === undefined) continue;
      if (!acceptor.isLive(seen.record, visiting.now())) continue;
      const { label, entry, data } = seen.record;
      listed.push({
        ...listedLease(resource, entry),
        ...(label !== undefined && { label }),
        ...(data !== undefined && { data }),
      });
    }
    return listed;
  }

  async #explain(store: number, resource: string): Promise<ResourceAnswer> {
    const { visiting } = this.#options;
    return this.#revise(store, resource, (record, now) => {
      const answer = answerOn(visiting.acceptor.load(resource, record, now), resource, now);
      const { label, data } = record ?? {};
      const told = { ...(label !== undefined && { label }), ...(data !== undefined && { data }) };
      return { next: undefined, value: { ...answer, ...told } };
    });
  }

  #break(store: number, resource: string, owner: string): Promise<boolean> {
    const { acceptor } = this.#options.visiting;
    return this.#revise(store, resource, (record, now) => {
      const loaded = acceptor.load(resource, record, now);
      if (record === undefined || !loaded.bar(resource, owner, now)) return { next: undefined, value: false };
      return { next: { ...record, entry: loaded.entry(resource)! }, value: true };
    });
  }

  /**
   * Resolves to true once the holder has seen the request, at its next renewal, or has gone. It does not wait
   * for the holder of a broken lease.
   */
  async #requestRelease(
    store: number,
    resource: string,
    owner: string,
    broken: boolean,
    timeoutMs: number,
  ): Promise<boolean> {
    const { visiting, pollMs, by } = this.#options;
    let wasAsked = false;
    for (let waitedMs = 0; ; waitedMs += pollMs) {
      const came = await this.#revise(store, resource, (record, now) => {
        const isHeld = record?.entry.leaseOwner === owner && visiting.acceptor.isLive(record, now);
        if (!isHeld) return { next: undefined, value: "gone" };
        const { asked } = record;
        const value = asked?.heard === true ? "heard" : "left";
        if (asked !== undefined && (asked.broken || !broken)) return { next: undefined, value };
        return { next: { ...record, asked: { by: by(), broken, heard: false } }, value: "left" };
      });
      if (came !== "left" || broken) return wasAsked || came !== "gone";
      wasAsked = true;
      if (waitedMs >= timeoutMs || this.#isClosed) return false;
      await this.#pauses.pause(pollMs);
    }
  }

  /**
   * The first answer of a session contains everything. Later ones contain changes, and come as soon as there
   * are any.
   */
  async #watch(store: number, session: number, prefix: string): Promise<FeedPage> {
    const name = `${store}/${session}`;
    const everyMs = Math.max(watchEveryMsMin, this.#options.pollMs);
    const isFirst = !this.#watches.has(name);
    if (isFirst) this.#watches.set(name, new Map());
    try {
      const now = () => this.#options.visiting.now().mono;
      const untilMs = now() + watchHoldMs;
      for (;;) {
        const beganMs = now();
        const held = await this.#list(store, prefix);
        const tookMs = now() - beganMs;
        const told = this.#watches.get(name);
        if (told === undefined || this.#isClosed) return { held: [], free: [], more: false, anew: false };
        const page = pageOf(told, held);
        if (isFirst) return { ...page, anew: true };
        if (page.held.length + page.free.length > 0 || now() >= untilMs) return page;
        await this.#pauses.pause(Math.max(everyMs, restFactor * tookMs));
      }
    } catch (error) {
      this.#watches.delete(name);
      throw error;
    }
  }

  /** @throws LeaseholdError */
  async #revise<T>(store: number, resource: string, change: Parameters<typeof revise<T>>[4]): Promise<T> {
    const { visiting, run } = this.#options;
    const came: Revision<T> = await run(revise(visiting, store, resource, undefined, change));
    if ("error" in came) throw came.error;
    return came.value;
  }
}

/** Returns the changes since the last page, and updates `told` with them. */
function pageOf(told: Told, held: readonly ListedLease[]): FeedPage {
  const changed = held.filter(({ resource, owner, token }) => {
    const before = told.get(resource);
    return before?.owner !== owner || before.token !== token;
  });
  const resources = new Set(held.map(({ resource }) => resource));
  const free = [...told.keys()].filter((resource) => !resources.has(resource));
  for (const resource of free) told.delete(resource);
  for (const { resource, owner, token } of changed) told.set(resource, { owner, token });
  return { held: changed, free, more: false, anew: false };
}
