import type { Event, KeyValue } from "leasehold/etcd/gen/etcd/kv_pb.js";
import type { WatchResponse } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { append } from "leasehold/inner/common/lists.js";
import { sizeOf } from "@leasehold/core/inner/replica/watch-events.js";
import { contains, type KeyRange } from "@leasehold/core/inner/state/keys.js";
import { toKeyValue } from "@leasehold/core/inner/state/key-value.js";
import { isDeletion, type Version } from "@leasehold/core/inner/state/revisions.js";
import { text } from "../world/requests.js";
import type { CoreWorld } from "../world/world.js";

/** The options of a watch. */
export interface WatchWish {
  readonly range: KeyRange;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  readonly progressNotify: boolean;
}

/** A watch, as its client sees it. */
export interface HeardWatch {
  readonly wish: WatchWish;
  /** The first revision that it has not received completely. */
  next: number;
  /** Fragments of the revision `next`. */
  readonly pieces: Event[];
  /** Since the watch was created on the present stream. */
  sinceMs: number;
  heardMs: number;
  notices: number;
}

/** How late a progress notification may be without faults. */
const lateMsMax = 3_000;

/**
 * A watch gets each requested change exactly once and in order: whole revisions at a time, or fragments if it
 * accepts them, with previous versions if it wants them. What a server says about the watch's progress is
 * true.
 */
export class StreamWatches {
  readonly #world: CoreWorld;

  constructor(world: CoreWorld) {
    this.#world = world;
  }

  heard(watch: HeardWatch, { events, fragment }: WatchResponse): void {
    const { wish } = watch;
    if (fragment && !wish.fragment) this.#wrong(watch, "a fragment came that nobody has asked for");
    if (wish.fragment) this.#checkSize(watch, events);
    append(watch.pieces, events);
    if (fragment) return;
    const whole = watch.pieces.splice(0);
    const last = Number(whole.at(-1)!.kv!.modRevision);
    const expected = this.#changes(watch, last);
    const said = whole.map(shownEvent);
    const due = expected.map(shownChange);
    if (said.join() !== due.join()) this.#wrong(watch, `${said.join()} came, and not ${due.join()}`);
    else whole.forEach((event, index) => this.#checkBefore(watch, event, expected[index]!));
    watch.next = last + 1;
  }

  /** Clients continue there. */
  toldOfProgress(watch: HeardWatch, revision: number): void {
    const untold = this.#changes(watch, revision);
    if (untold.length > 0)
      this.#wrong(watch, `progress up to ${revision} without ${untold.map(shownChange).join()}`);
    watch.next = Math.max(watch.next, revision + 1);
  }

  /** A progress notification that the server sends unasked. */
  noticed(watch: HeardWatch, revision: number): void {
    this.#world.counters.watchNotices += 1;
    watch.notices += 1;
    if (!watch.wish.progressNotify)
      this.#wrong(watch, "a progress notification came that nobody has asked for");
    const livedMs = this.#world.nowMs - watch.sinceMs;
    if (watch.notices > (livedMs * (1 + this.#world.plan.clockRateError)) / this.#intervalMs + 1)
      this.#wrong(watch, `${watch.notices} progress notifications came in ${livedMs.toFixed(0)} ms`);
    this.toldOfProgress(watch, revision);
  }

  /** The server has ended the watch because the revision at which it continues was compacted. */
  compacted(watch: HeardWatch, revision: number): void {
    if (watch.next >= revision) this.#wrong(watch, `it was ended for a compaction to ${revision}`);
    watch.next = Math.max(watch.next, revision);
  }

  /** At the end of a run nothing is missing, and watches without events have been notified of that. */
  settled(watch: HeardWatch): void {
    const missing = this.#changes(watch, Infinity);
    if (missing.length > 0) this.#wrong(watch, `never came: ${missing.map(shownChange).join()}`);
    if (watch.pieces.length > 0) this.#wrong(watch, "a revision has never ended");
    const quietMs = this.#world.nowMs - watch.heardMs;
    if (
      watch.wish.progressNotify &&
      quietMs > this.#intervalMs * (1 + this.#world.plan.clockRateError) + lateMsMax
    )
      this.#wrong(watch, `no progress notification for ${quietMs.toFixed(0)} ms`);
  }

  get #intervalMs(): number {
    return this.#world.plan.limits.progressNotifyMs!;
  }

  #checkSize(watch: HeardWatch, events: readonly Event[]): void {
    const bytes = events.reduce((sum, event) => sum + sizeOf(event), 0);
    if (events.length > 1 && bytes > this.#world.plan.limits.fragmentBytesMax!)
      this.#wrong(watch, `a fragment of ${bytes} bytes came`);
  }

  /** A compacted version may be missing. */
  #checkBefore(watch: HeardWatch, { prevKv }: Event, change: Version): void {
    const { changes, state } = this.#world.reference;
    const before = changes.findLast(({ key, modified }) => key === change.key && modified < change.modified);
    const due = before === undefined || isDeletion(before) ? undefined : shownVersion(toKeyValue(before));
    const said = prevKv && shownVersion(prevKv);
    const mayBeAbsent = !watch.wish.prevKv || state.revisions.compacted >= change.modified;
    if (said === undefined ? due !== undefined && !mayBeAbsent : said !== due || !watch.wish.prevKv)
      this.#wrong(watch, `before ${shownChange(change)} came ${said}, and not ${due}`);
  }

  #changes({ next, wish: { noDelete, noPut, range } }: HeardWatch, to: number): Version[] {
    return this.#world.reference.changes.filter(
      (change) =>
        change.modified >= next &&
        change.modified <= to &&
        contains(range, change.key) &&
        !(isDeletion(change) ? noDelete : noPut),
    );
  }

  #wrong({ next, wish }: HeardWatch, what: string): void {
    const { range, ...options } = wish;
    this.#world.report("watch", `${JSON.stringify({ ...range, ...options })} from ${next} on: ${what}`);
  }
}

function shownEvent({ kv, type }: Event): string {
  return type === 1 ? `${text(kv!.key)}@${kv!.modRevision} deleted` : shownVersion(kv!);
}

function shownChange(change: Version): string {
  return isDeletion(change) ? `${change.key}@${change.modified} deleted` : shownVersion(toKeyValue(change));
}

function shownVersion({ createRevision, key, lease, modRevision, value, version }: KeyValue): string {
  return `${text(key)}@${modRevision}/${createRevision}/${version}/${lease}=${text(value).slice(0, 8)}`;
}
