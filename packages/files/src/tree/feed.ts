import { LeaseholdError, unwatchAbort, watchAbort } from "leasehold/common";
import type { NameEvent } from "../names/change-log.js";
import type { ChangeBatch, ChangesOptions, FileChange } from "../types.js";
import type { NamesOperation, NamesResult } from "../names/types.js";

/** Changes in a batch. */
const changesPerBatch = 500;
/** Changes elsewhere after which a follower gets a new cursor: a small part of those that are kept. */
const quietMax = 1_000;
/** Followers that wait at one node. */
const waitingMax = 1_024;

type Ask = (operation: NamesOperation, signal: AbortSignal | undefined) => Promise<NamesResult>;

interface Waiting {
  readonly after: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Follows changes of names, for any number of programs at this node. They read from the primary what they
 * lack; for what comes next the node asks once for all of them.
 */
export class Feed {
  readonly #askNames: Ask;
  readonly #waiting = new Set<Waiting>();
  readonly #closing = new AbortController();
  #isAsking = false;

  constructor(askNames: Ask) {
    this.#askNames = askNames;
  }

  async *follow(folder: string, { after, signal }: ChangesOptions): AsyncGenerator<ChangeBatch> {
    let [feed, at] = after === undefined ? ["", null] : parseCursor(after);
    let given = -Infinity;
    for (;;) {
      const ask = { kind: "changes", folder, after: at, feed, limit: changesPerBatch } as const;
      const result = await this.#askNames(ask, signal);
      const { events, last, isMore } = result.page!;
      feed = result.feed!;
      at = last;
      if (events.length > 0 || last - given >= quietMax) {
        given = last;
        yield {
          changes: events.map(([number, event]) => changeOf(feed, number, event)),
          cursor: cursorOf(feed, last),
        };
      }
      if (!isMore) await this.#newer(last, signal);
    }
  }

  close(): void {
    this.#closing.abort();
    this.#endAll((each) => each.reject(new LeaseholdError("CLOSED")));
  }

  /** Resolves when there is a change after that one. */
  #newer(after: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#closing.signal.aborted) throw new LeaseholdError("CLOSED");
    if (this.#waiting.size >= waitingMax)
      throw new LeaseholdError("OVERLOADED", "too many programs follow changes at this node");
    return new Promise((resolve, reject) => {
      const ended = (): void => {
        this.#waiting.delete(waiting);
        unwatchAbort(signal, abort);
      };
      const abort = (): void => waiting.reject(signal?.reason);
      const waiting: Waiting = {
        after,
        resolve: () => {
          ended();
          resolve();
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
    while (this.#waiting.size > 0) {
      let after = Infinity;
      for (const each of this.#waiting) after = Math.min(after, each.after);
      try {
        const { last = 0 } = await this.#askNames({ kind: "news", after }, this.#closing.signal);
        this.#endAll((each) => each.after < last && each.resolve());
      } catch (error) {
        this.#endAll((each) => each.reject(error));
      }
    }
    this.#isAsking = false;
  }

  #endAll(end: (waiting: Waiting) => void): void {
    for (const each of this.#waiting) end(each);
  }
}

const cursorOf = (feed: string, number: number): string => `${feed}-${number.toString(36)}`;

/** @throws LeaseholdError `CURSOR_GONE` */
function parseCursor(cursor: string): [feed: string, number: number] {
  const [, feed, number] = /^([0-9A-Za-z]{1,8})-([0-9a-z]{1,11})$/.exec(cursor) ?? [];
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
