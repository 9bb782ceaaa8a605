import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { append, type Room } from "leasehold/common";
import type { Event } from "leasehold/etcd/gen/etcd/kv_pb.js";
import {
  type WatchCreateRequest,
  WatchCreateRequest_FilterType as Filter,
  type WatchResponse,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { contains, type KeyRange } from "../state/keys.js";
import { isDeletion, type KeysView, type Version } from "../state/revisions.js";
import type { Rights } from "../state/auth-state.js";
import type { Context } from "./context.js";
import {
  byRevision,
  bytesOf,
  eventOf,
  eventOverheadBytes,
  type SharedEvent,
  sizeOf,
} from "./watch-events.js";

/** Watch id in a response to a progress request. */
const allWatches = -1n;

/** The watches of one client's stream, and its responses in flight. */
export class WatchStream {
  readonly number: number;
  /** The client key. */
  readonly client: string;
  readonly context: Context;
  readonly watchers = new Map<bigint, Watcher>();
  /** Unsynced watches, while the client accepts nothing. */
  readonly stalled = new Set<Watcher>();
  /** Bytes of each unsent response. */
  readonly #unsent: number[] = [];
  readonly #unsentBytes: Room;
  readonly #shared: SharedEvent;
  readonly #emit: (response: WatchResponse) => void;
  #nextId = 0n;

  /**
   * @param unsentBytes room of all streams' responses
   * @param shared common parts of responses
   */
  constructor(
    { stream, client }: { readonly stream: number; readonly client: string },
    context: Context,
    unsentBytes: Room,
    shared: SharedEvent,
    emit: (response: WatchResponse) => void,
  ) {
    this.number = stream;
    this.client = client;
    this.#unsentBytes = unsentBytes;
    this.#shared = shared;
    this.context = context;
    this.#emit = emit;
  }

  /** The watches of a slow client wait in history, which exists anyway, instead of in a queue. */
  get hasRoom(): boolean {
    return (
      this.#unsent.length < this.context.limits.watchResponsesMax && this.#unsentBytes.hasRoomFor(this.client)
    );
  }

  /** This many more responses were sent. */
  sent(responses: number): void {
    let bytes = 0;
    if (responses === 1) bytes = this.#unsent.shift() ?? 0;
    else for (const each of this.#unsent.splice(0, responses)) bytes += each;
    this.#unsentBytes.release(this.client, bytes);
  }

  /** The stream has ended: releases its room. */
  closed(): void {
    this.sent(this.#unsent.length);
  }

  /** Never returns an id that the server chose before on this stream, as in etcd. */
  freeId(): bigint {
    while (this.watchers.has(this.#nextId)) this.#nextId += 1n;
    const id = this.#nextId;
    this.#nextId += 1n;
    return id;
  }

  emit(fields: MessageInitShape<typeof WatchResponseSchema>): void {
    this.#handOut(create(WatchResponseSchema, { header: this.context.header(), ...fields }));
  }

  #handOut(response: WatchResponse): void {
    const bytes = eventOverheadBytes + bytesOf(response.events);
    this.#unsent.push(bytes);
    this.#unsentBytes.overdraw(this.client, bytes);
    this.#emit(response);
  }

  /**
   * Emits a watch's events before a revision. A revision is never split, unless the client asked for
   * fragments.
   */
  emitEvents(watcher: Watcher, before: number): void {
    const { id: watchId } = watcher;
    const { events } = watcher;
    const isWhole = ({ kv }: Event) => Number(kv!.modRevision) < before;
    if (events[0] === undefined || !isWhole(events[0])) return;
    watcher.keep(before === Infinity ? [] : events.splice(events.findLastIndex(isWhole) + 1));
    watcher.lastSentMs = this.context.nowMs;
    // The usual case; many watches share the response.
    if (events.length === 1) {
      this.#handOut(this.#shared.responseOf(events[0], watchId, this.context));
      return;
    }
    const bytesMax = this.context.limits.fragmentBytesMax;
    let batch: Event[] = [];
    let bytes = 0;
    const emitBatch = () => {
      if (batch.length > 0) this.emit({ watchId, events: batch });
      batch = [];
      bytes = 0;
    };
    for (const revision of byRevision(events)) {
      const size = bytesOf(revision);
      if (bytes + size > bytesMax) emitBatch();
      if (size > bytesMax && watcher.fragment) {
        this.#emitFragments(watchId, revision);
        continue;
      }
      append(batch, revision);
      bytes += size;
    }
    emitBatch();
  }

  /**
   * Emits the available part of an unfinished revision, except its last event, which later marks the end.
   */
  emitPart(watcher: Watcher): void {
    const { events } = watcher;
    if (events.length < 2) return;
    watcher.keep(events.splice(events.length - 1));
    this.#emitFragments(watcher.id, events, true);
  }

  #emitFragments(watchId: bigint, events: readonly Event[], fragment = false): void {
    const bytesMax = this.context.limits.fragmentBytesMax;
    let piece: Event[] = [];
    let bytes = 0;
    for (const event of events) {
      if (piece.length > 0 && bytes + sizeOf(event) > bytesMax) {
        this.emit({ watchId, events: piece, fragment: true });
        piece = [];
        bytes = 0;
      }
      piece.push(event);
      bytes += sizeOf(event);
    }
    this.emit({ watchId, events: piece, fragment });
  }

  /** "All events have been sent": true only once all watches of the stream have caught up. */
  emitProgress(): boolean {
    for (const { isSynced } of this.watchers.values()) if (!isSynced) return false;
    this.emit({ watchId: allWatches });
    return true;
  }
}

/** Memory of a watch in addition to its keys, measured: the object, and its entries in maps. */
const watchOverheadBytes = 600;

/** One watch of a client. */
export class Watcher {
  readonly id: bigint;
  readonly stream: WatchStream;
  readonly range: KeyRange;
  readonly fragment: boolean;
  readonly progressNotify: boolean;
  readonly #noPut: boolean;
  readonly #noDelete: boolean;
  readonly #prevKv: boolean;
  /** The watch's user, if authenticated, and the rights against which it was last checked. */
  user: string | undefined;
  rights: Rights | undefined;
  /** The user was deleted, or may have been. */
  isOrphaned = false;
  /** Everything before this revision was emitted, or not asked for. */
  next: number;
  /** Number of changes in revision `next` already visited. */
  nextSub = 0;
  /**
   * Whether it gets each change as it is applied. Otherwise it reads from history, from `next` on, until it
   * has caught up.
   */
  isSynced = false;
  /**
   * Pending events in order: whole revisions and, for an unsynced watch, possibly a part of revision `next`.
   */
  events: Event[] = [];
  eventBytes = 0;
  lastSentMs: number;

  constructor(stream: WatchStream, id: bigint, range: KeyRange, request: WatchCreateRequest, next: number) {
    this.stream = stream;
    this.id = id;
    this.range = range;
    this.fragment = request.fragment;
    this.progressNotify = request.progressNotify;
    this.#noPut = request.filters.includes(Filter.NOPUT);
    this.#noDelete = request.filters.includes(Filter.NODELETE);
    this.#prevKv = request.prevKv;
    this.next = next;
    this.lastSentMs = stream.context.nowMs;
  }

  /** Approximate memory of the watch. */
  get bytes(): number {
    return watchOverheadBytes + this.range.from.length + (this.range.to?.length ?? 0);
  }

  /** @param shared used for watches without previous values */
  add(change: Version, revisions: KeysView, shared: SharedEvent): void {
    const event = this.#prevKv ? eventOf(change, revisions.before(change)) : shared.of(change);
    this.events.push(event);
    this.eventBytes += sizeOf(event);
  }

  /** Replaces the pending events with those still to be emitted. */
  keep(events: Event[]): void {
    this.events = events;
    this.eventBytes = 0;
    for (const event of events) this.eventBytes += sizeOf(event);
  }

  /** Returns to the beginning of the watch's current revision. */
  beginAgain(): void {
    this.keep([]);
    this.nextSub = 0;
  }

  wants(change: Version): boolean {
    if (change.modified < this.next || !contains(this.range, change.key)) return false;
    return !(isDeletion(change) ? this.#noDelete : this.#noPut);
  }
}
