import { LeaseholdError, unwatchAbort, watchAbort } from "leasehold/common";
import { keptAtLeast, type LogPage, type NameEvent, seenFrom } from "../names/change-log.js";
import type { ChangeBatch, ChangesOptions, FileChange } from "../types.js";
import type { NamesOperation, NamesResult } from "../names/types.js";

/** The most changes in a batch. */
const changesPerBatch = 500;
/** After this many changes elsewhere a follower gets a new cursor: a fraction of the changes kept. */
const quietMax = keptAtLeast / 4;
/** The most followers that wait at one node. */
const waitingMax = 1_024;

type Ask = (operation: NamesOperation, signal: AbortSignal | undefined) => Promise<NamesResult>;

interface Waiting {
  readonly feed: string;
  readonly after: number;
  /** Without a page the follower asks for the changes itself. */
  readonly resolve: (page?: LogPage) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Follows changes of names for any number of programs at this node. A program that is behind reads the
 * missing changes from the primary. New changes are read once by the node, for all programs.
 */
export class Feed {
  readonly #askNames: Ask;
  readonly #waiting = new Set<Waiting>();
  readonly #closing = new AbortController();
  #isAsking = false;
  /** The greatest change known here, and its log. */
  #feed = "";
  #last = 0;
  /** The last page shared by all followers, and the change that precedes it. */
  #recent: { readonly after: number; readonly page: LogPage } | undefined;

  constructor(askNames: Ask) {
    this.#askNames = askNames;
  }

  async *follow(folder: string, { after, signal }: ChangesOptions): AsyncGenerator<ChangeBatch> {
    let [feed, at] = after === undefined ? ["", null] : parseCursor(after);
    let given = -Infinity;
    let page: LogPage | undefined;
    for (;;) {
      if (page === undefined) {
        const ask = { kind: "changes", folder, after: at, feed, limit: changesPerBatch } as const;
        const result = await this.#askNames(ask, signal);
        page = result.page!;
        feed = result.feed!;
        this.#learn(feed, page.last);
      }
      const { events, last, isMore }: LogPage = page;
      at = last;
      if (events.length > 0 || last - given >= quietMax) {
        given = last;
        yield {
          changes: events.map(([number, event]) => changeOf(feed, number, event)),
          cursor: cursorOf(feed, last),
        };
      }
      page = isMore ? undefined : within(await this.#newer(feed, last, signal), last, folder);
    }
  }

  close(): void {
    this.#closing.abort();
    this.#endAll((each) => each.reject(new LeaseholdError("CLOSED")));
  }

  #learn(feed: string, last: number): void {
    if (feed !== this.#feed) this.#recent = undefined;
    this.#last = feed === this.#feed ? Math.max(this.#last, last) : last;
    this.#feed = feed;
  }

  /**
   * Resolves when there is a change after that one. It resolves with a page, unless the node has already read
   * past it.
   */
  async #newer(feed: string, after: number, signal: AbortSignal | undefined): Promise<LogPage | undefined> {
    signal?.throwIfAborted();
    if (this.#closing.signal.aborted) throw new LeaseholdError("CLOSED");
    if (this.#waiting.size >= waitingMax)
      throw new LeaseholdError("OVERLOADED", "too many programs follow changes at this node");
    if (feed !== this.#feed) return undefined;
    if (after < this.#last)
      return this.#recent && this.#recent.after <= after ? this.#recent.page : undefined;
    return new Promise((resolve, reject) => {
      const ended = (): void => {
        this.#waiting.delete(waiting);
        unwatchAbort(signal, abort);
      };
      const abort = (): void => waiting.reject(signal?.reason);
      const waiting: Waiting = {
        feed,
        after,
        resolve: (page) => {
          ended();
          resolve(page);
        },
        reject: (error) => {
          ended();
          reject(error as Error);
        },
      };
      this.#waiting.add(waiting);
      watchAbort(signal, abort);
      void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    // The first waiter has seen the least, because it began to wait before the others.
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      const { feed, after } = first;
      try {
        const ask = { kind: "news", after, feed, limit: changesPerBatch } as const;
        this.#spread(after, await this.#askNames(ask, this.#closing.signal));
      } catch (error) {
        this.#endAll((each) => each.reject(error));
      }
    }
    this.#isAsking = false;
  }

  #spread(from: number, { feed, last = 0, page }: NamesResult): void {
    if (page === undefined || feed === undefined) {
      // The log has changed, or the primary has a former version, which reports only its last change.
      this.#endAll(({ after, resolve }) => (feed !== undefined || after < last) && resolve());
      return;
    }
    this.#learn(feed, page.last);
    if (page.last > from) this.#recent = { after: from, page };
    this.#endAll((each) => {
      if (each.feed !== feed) each.resolve();
      else if (each.after < page.last) each.resolve(page);
    });
  }

  #endAll(end: (waiting: Waiting) => void): void {
    for (const each of this.#waiting) end(each);
  }
}

const cursorOf = (feed: string, number: number): string => `${feed}-${number.toString(36)}`;

/** What a follower of that folder sees of a page, if it has seen the changes up to that number. */
function within(page: LogPage | undefined, after: number, folder: string): LogPage | undefined {
  if (page === undefined || page.last <= after) return undefined;
  const events: (readonly [number, NameEvent])[] = [];
  for (const [number, each] of page.events) {
    const event = number > after ? seenFrom(each, folder) : undefined;
    if (event !== undefined) events.push([number, event]);
  }
  // The node reads further pages for all followers.
  return { events, last: page.last, isMore: false };
}

/** @throws LeaseholdError `CURSOR_GONE` */
function parseCursor(cursor: string): [feed: string, number: number] {
  const [, feed, number] = /^([0-9A-Za-z]{1,8}\.[0-9a-z]{1,32})-([0-9a-z]{1,11})$/.exec(cursor) ?? [];
  if (feed === undefined || number === undefined)
    throw new LeaseholdError("CURSOR_GONE", `${JSON.stringify(cursor)} is no cursor`);
  return [feed, Number.parseInt(number, 36)];
}

function changeOf(feed: string, number: number, event: NameEvent): FileChange {
  const { what, path, isFolder, from, version, size } = event;
  return {
    what,
    kind: isFolder ? "folder" : "file",
    path,
    ...(from !== undefined && { from }),
    ...(version !== undefined && { version, size }),
    cursor: cursorOf(feed, number),
  };
}
