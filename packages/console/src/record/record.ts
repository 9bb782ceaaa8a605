import type { Change, ResourceHint } from "leasehold";
import type { EventView, LeaseView, TenureEnd, TenureView } from "./messages.js";
import { shortHolder } from "./holder.js";

/** Limits of the history. The oldest entries are dropped first. */
const tenuresMax = 50;
const namesMax = 100_000;
const eventsMax = 1_000;
/** The most names that are queued for a reader. A reader that falls further behind reads everything again. */
const dirtyMax = 20_000;
/** A lease that is freed this shortly before its known end may have run out. */
const ranOutWithinMs = 250;
/** Holders renew long before so little of the time is left. */
const unrenewedShare = 0.2;

interface Held extends LeaseView {
  readonly data: string;
  /** When an answer last confirmed `endsMs`. */
  readonly toldMs: number;
}

/** The changes since a reader last looked. */
export interface Dirty {
  readonly names: Set<string>;
  readonly ends: Set<string>;
  /** Too many changes: the reader must read everything again. */
  isTooMuch: boolean;
  events: number;
}

/**
 * The leases that a watch has reported, and their history since the watch began. Times are by the console's
 * system clock. Nothing here decides who may use a resource.
 */
export class LeaseRecord {
  readonly #held = new Map<string, Held>();
  readonly #tenures = new Map<string, TenureView[]>();
  readonly #events: EventView[] = [];
  readonly #readers = new Set<Dirty>();
  #eventNumber = 0;

  get size(): number {
    return this.#held.size;
  }

  get(name: string): LeaseView | undefined {
    const held = this.#held.get(name);
    if (held === undefined) return undefined;
    const { data: _data, toldMs: _toldMs, ...view } = held;
    return view;
  }

  /** The names of the held leases, sorted as text. */
  names(): string[] {
    return [...this.#held.keys()].sort();
  }

  /** The tenures of a name, oldest first. */
  tenures(name: string): readonly TenureView[] {
    return this.#tenures.get(name) ?? [];
  }

  /** The events with a greater number, as far as they are kept. */
  eventsAfter(number: number): readonly EventView[] {
    const count = this.#eventNumber - number;
    return count <= 0 ? [] : this.#events.slice(-count);
  }

  /** Returns a set in which changes from now on are noted, until `forget`. */
  read(): Dirty {
    const dirty: Dirty = {
      names: new Set(),
      ends: new Set(),
      isTooMuch: false,
      events: this.#eventNumber,
    };
    this.#readers.add(dirty);
    return dirty;
  }

  forget(dirty: Dirty): void {
    this.#readers.delete(dirty);
  }

  /**
   * The leases that are held when a watch begins. A lease that the record did not have was acquired earlier.
   */
  begin(hints: readonly ResourceHint[], nowMs: number): void {
    const listed = new Set(hints.map(({ resource }) => resource));
    for (const name of this.#held.keys()) if (!listed.has(name)) this.#free(name, nowMs);
    for (const hint of hints) {
      const { holder, token } = hint;
      if (holder !== undefined && token !== undefined) this.#hold(hint, holder, token, nowMs, true);
    }
  }

  /** Records a change that the watch reported. */
  change(change: Change, nowMs: number): void {
    const { resource, state, token, holder } = change;
    if (state === "held" && holder !== undefined && token !== undefined)
      this.#hold(change, holder, token, nowMs, false);
    else if (state === "free") this.#free(resource, nowMs);
  }

  /** An answer of `list`, which contains the ends of renewed leases. */
  renewed(hints: readonly ResourceHint[], nowMs: number): void {
    for (const { resource, token, remainingMs } of hints) {
      const held = this.#held.get(resource);
      if (held === undefined || remainingMs === undefined || String(token) !== held.token) continue;
      const endsMs = nowMs + remainingMs;
      // Answers may be out of order. A renewal never makes the end earlier, so keep the later one.
      if (endsMs <= held.endsMs) {
        this.#held.set(resource, { ...held, toldMs: nowMs });
        continue;
      }
      this.#held.set(resource, {
        ...held,
        endsMs,
        toldMs: nowMs,
        spanMs: Math.max(held.spanMs, remainingMs),
      });
      for (const reader of this.#readers) reader.ends.add(resource);
    }
  }

  /** Adds an event that concerns no lease. */
  note(kind: "ground" | "trouble" | "action", text: string, nowMs: number, name?: string): void {
    this.#add({ kind, text, atMs: nowMs, ...(name !== undefined && { name }) });
  }

  #hold(
    { resource, label, remainingMs = 0, data: given }: ResourceHint | Change,
    holder: string,
    token: bigint,
    nowMs: number,
    isFirst: boolean,
  ): void {
    const data = JSON.stringify(given) ?? "";
    const before = this.#held.get(resource);
    const isSame = before?.token === String(token);
    if (isSame && before.holder === holder && before.label === label && before.data === data) return;
    if (before !== undefined && !isSame) this.#end(resource, before, "passed-on", nowMs);
    const isOlder = isSame ? before.isOlder === true : isFirst && before === undefined;
    const held: Held = {
      name: resource,
      holder,
      token: String(token),
      ...(label !== undefined && { label }),
      sinceMs: isSame ? before.sinceMs : nowMs,
      ...(isOlder && { isOlder }),
      endsMs: Math.max(nowMs + remainingMs, isSame ? before.endsMs : 0),
      spanMs: Math.max(remainingMs, isSame ? before.spanMs : 0),
      data,
      toldMs: nowMs,
    };
    this.#held.set(resource, held);
    this.#changed(resource);
    if (isSame) {
      this.#changeTenure(resource, held.token, label === undefined ? {} : { label });
      return;
    }
    this.#begin(resource, held);
    if (!isOlder)
      this.#add({
        kind: "acquired",
        atMs: nowMs,
        name: resource,
        text: `${whoIs(held)} acquired it, token ${token}`,
      });
  }

  #free(resource: string, nowMs: number): void {
    const before = this.#held.get(resource);
    if (before === undefined) return;
    this.#held.delete(resource);
    this.#changed(resource);
    this.#end(resource, before, endOf(before, nowMs), nowMs);
  }

  #begin(resource: string, { holder, label, token, sinceMs, isOlder }: Held): void {
    const tenures = this.#tenures.get(resource) ?? [];
    // Moves the name to the end: names with the oldest news are dropped first.
    this.#tenures.delete(resource);
    this.#tenures.set(resource, tenures);
    tenures.push({
      holder,
      token,
      sinceMs,
      ...(label !== undefined && { label }),
      ...(isOlder === true && { isOlder }),
    });
    if (tenures.length > tenuresMax) tenures.shift();
    if (this.#tenures.size <= namesMax) return;
    const [oldest = resource] = this.#tenures.keys();
    this.#tenures.delete(oldest);
  }

  #end(resource: string, held: Held, end: TenureEnd, nowMs: number): void {
    const who = whoIs(held);
    this.#changeTenure(resource, held.token, { untilMs: nowMs, end });
    const text = {
      released: `${who} released it`,
      "ran-out": `the lease of ${who} ran out`,
      "passed-on": `${who} no longer holds it`,
      ended: `${who} no longer holds it`,
    }[end];
    this.#add({ kind: end, atMs: nowMs, name: resource, text });
  }

  #changeTenure(resource: string, token: string, change: Partial<TenureView>): void {
    const tenures = this.#tenures.get(resource);
    const last = tenures?.at(-1);
    if (tenures !== undefined && last?.token === token) tenures[tenures.length - 1] = { ...last, ...change };
  }

  #changed(resource: string): void {
    for (const reader of this.#readers) {
      reader.names.add(resource);
      if (reader.names.size <= dirtyMax) continue;
      reader.names.clear();
      reader.ends.clear();
      reader.isTooMuch = true;
    }
  }

  #add(event: Omit<EventView, "number">): void {
    this.#eventNumber += 1;
    this.#events.push({ number: this.#eventNumber, ...event });
    if (this.#events.length > eventsMax) this.#events.shift();
  }
}

function endOf({ endsMs, spanMs, toldMs }: Held, nowMs: number): TenureEnd {
  if (nowMs < endsMs - ranOutWithinMs) return "released";
  return toldMs > endsMs - unrenewedShare * spanMs ? "ran-out" : "ended";
}

/** Excludes the label, which may arrive after the lease: a holder should keep one name. */
const whoIs = ({ holder }: Held): string => shortHolder(holder);
