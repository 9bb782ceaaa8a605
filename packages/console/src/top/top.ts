import type { Leases } from "leasehold";
import { type GroundStatus, Terminal, paintFor } from "leasehold/cli";
import type { LeaseView } from "../record/messages.js";
import { Observer } from "../server/observer.js";
import type { Detail } from "./detail.js";
import { type HolderRow, holderRows, leaseRows } from "./lists.js";
import { Rates } from "./rates.js";
import { pageOf, showsDetail, topLines } from "./screen.js";
import { firstState, press } from "./state.js";

const frameMs = 250;
/**
 * The order by time left changes by itself: it is refreshed this often. Sorting takes a tenth of the time at
 * most.
 */
const sortEveryMs = 1_000;
const sortShare = 10;
const askEveryMs = 1_000;
/** A lease is queried once the cursor has rested on it for this long. */
const restMs = 150;
const askMsMax = 5_000;
const rateSeconds = 240;
const eventsShown = 200;

export interface TopParts {
  readonly leases: Leases;
  readonly askGround: () => Promise<GroundStatus>;
  readonly endpoints: string;
  /** Aborts to end the screen. */
  readonly signal: AbortSignal;
}

/** Shows leases, holders and their ground on the terminal until a key or the signal ends it. */
export async function runTop(parts: TopParts): Promise<void> {
  const top = new Top(parts);
  // A last resort: whatever ends this process, the terminal is restored.
  const restore = (): void => top.restore();
  process.once("exit", restore);
  try {
    await top.ended;
  } finally {
    await top.close();
    process.off("exit", restore);
  }
}

class Top {
  readonly ended: Promise<void>;
  readonly #parts: TopParts;
  readonly #observer: Observer;
  readonly #terminal: Terminal;
  readonly #paint = paintFor(true, process.env);
  readonly #rates = new Rates(rateSeconds, Date.now());
  readonly #dirty;
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #asking: Promise<void>;
  #state = firstState;
  #leases: readonly LeaseView[] = [];
  #holders: readonly HolderRow[] = [];
  #listedMs = 0;
  #listTookMs = 0;
  #detail: Detail | undefined;
  /** Starts the next query at once. */
  #moved: () => void = () => undefined;
  #end: () => void = () => undefined;

  constructor(parts: TopParts) {
    this.#parts = parts;
    this.#observer = new Observer(parts);
    this.#dirty = this.#observer.record.read();
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    parts.signal.addEventListener("abort", this.#end, { once: true });
    if (parts.signal.aborted) this.#end();
    this.#terminal = new Terminal(
      (key) => this.#key(key),
      () => this.#draw(),
    );
    this.#terminal.enter();
    this.#timer = setInterval(() => this.#draw(), frameMs);
    this.#draw();
    this.#asking = this.#askAgain();
  }

  restore(): void {
    this.#terminal.leave();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.restore();
    this.#stop.abort();
    this.#moved();
    await this.#asking;
    await this.#observer.close();
  }

  #key(key: string): void {
    if (key === "ctrl-c" || (key === "q" && !this.#state.isTyping)) return this.#end();
    const before = this.#state;
    const rows =
      before.view === "holders"
        ? this.#holders.map(({ holder }) => holder)
        : this.#leases.map(({ name }) => name);
    const page = pageOf(this.#terminal.size, before);
    this.#state = press(before, key, { rows, page });
    const { order, isReversed, filter, view, chosen, isOpen } = this.#state;
    if (
      order !== before.order ||
      isReversed !== before.isReversed ||
      filter !== before.filter ||
      view !== before.view
    )
      this.#list(Date.now());
    if (chosen !== before.chosen || isOpen !== before.isOpen) this.#moved();
    this.#draw();
  }

  #draw(): void {
    const { record, ground, trouble } = this.#observer;
    const nowMs = Date.now();
    const { names, ends, isTooMuch, events } = this.#dirty;
    const hasChanged = names.size > 0 || isTooMuch;
    const isTimed = this.#state.order === "time left" && ends.size > 0;
    const pauseMs = Math.max(hasChanged ? 0 : sortEveryMs, sortShare * this.#listTookMs);
    if ((hasChanged || isTimed) && nowMs - this.#listedMs >= pauseMs) this.#list(nowMs);
    const fresh = record.eventsAfter(events);
    const newest = fresh.at(-1)?.number ?? events;
    this.#rates.add(newest - events, nowMs);
    this.#dirty.events = newest;
    const scene = {
      nowMs,
      endpoints: this.#parts.endpoints,
      ground,
      trouble,
      total: record.size,
      leases: this.#leases,
      latest: (name: string) => record.get(name),
      holders: this.#holders,
      events: record.eventsAfter(newest - eventsShown),
      rates: this.#rates.perSecond(nowMs),
      detail: this.#detailNow(),
    };
    this.#terminal.draw(topLines(scene, this.#state, this.#terminal.size, this.#paint));
  }

  /** Rebuilds the lists. The cursor stays on its row while the row exists. */
  #list(nowMs: number): void {
    const { names, ends } = this.#dirty;
    names.clear();
    ends.clear();
    this.#dirty.isTooMuch = false;
    this.#listedMs = nowMs;
    const begunMs = performance.now();
    this.#leases = leaseRows(this.#observer.record, this.#state);
    this.#holders = this.#state.view === "holders" ? holderRows(this.#leases, this.#state) : [];
    this.#listTookMs = performance.now() - begunMs;
  }

  /** The lease at the cursor, if its details are visible. */
  get #asked(): string | undefined {
    const { chosen = this.#leases[0]?.name } = this.#state;
    return showsDetail(this.#terminal.size, this.#state) ? chosen : undefined;
  }

  #detailNow(): Detail | undefined {
    const name = this.#asked;
    if (name === undefined) return undefined;
    const { record } = this.#observer;
    const found = this.#detail?.name === name ? this.#detail : undefined;
    return { ...found, name, lease: record.get(name), tenures: record.tenures(name) };
  }

  async #askAgain(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const name = this.#asked;
      if (name !== undefined) {
        const answer = await this.#ask(name, signal);
        if (name === this.#asked) this.#detail = { ...answer, name, lease: undefined, tenures: [] };
      }
      const isSame = await this.#pause(askEveryMs);
      if (!isSame && !signal.aborted) await this.#pause(restMs);
    }
  }

  async #ask(name: string, signal: AbortSignal): Promise<Partial<Detail>> {
    const before = this.#detail?.name === name ? this.#detail.explanation : undefined;
    try {
      return { explanation: await this.#parts.leases.explain(name, { timeout: askMsMax, signal }) };
    } catch (error) {
      const failure = error instanceof Error ? error.message : String(error);
      return { failure, ...(before !== undefined && { explanation: before }) };
    }
  }

  /** Whether the cursor stayed on its row. */
  #pause(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(true), ms);
      this.#moved = () => {
        clearTimeout(timer);
        resolve(false);
      };
    });
  }
}
