import { create } from "@bufbuild/protobuf";
import { type Event, Event_EventType as EventType, EventSchema, KeyValueSchema } from "../gen/etcd/kv_pb.js";
import { type WatchCreateRequest, WatchCreateRequest_FilterType as Filter } from "../gen/etcd/rpc_pb.js";
import { bytesOf, contains, type KeyRange } from "../state/keys.js";
import { toKeyValue } from "../state/range.js";
import { isDeletion, type KeysView, type Version } from "../state/revisions.js";
import { sizeOf, type WatchStream } from "./watch-stream.js";

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
  /** Everything before it has been handed out, or was not asked for. */
  next: number;
  /** So many changes of revision `next` have been looked at. */
  nextSub = 0;
  /** Gets each change as it is applied. Otherwise it reads from history, from `next` on, until it has caught up. */
  isSynced = false;
  /** To be handed out, in order: whole revisions, and of a watch that is behind perhaps a part of revision `next`. */
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

  add(change: Version, revisions: KeysView): void {
    const event = this.#eventOf(change, revisions);
    this.events.push(event);
    this.eventBytes += sizeOf(event);
  }

  /** What is left to be handed out. */
  keep(events: Event[]): void {
    this.events = events;
    this.eventBytes = 0;
    for (const event of events) this.eventBytes += sizeOf(event);
  }

  /** Goes back to the beginning of the revision that it is in. */
  beginAgain(): void {
    this.keep([]);
    this.nextSub = 0;
  }

  wants(change: Version): boolean {
    if (change.modified < this.next || !contains(this.range, change.key)) return false;
    return !(isDeletion(change) ? this.#noDelete : this.#noPut);
  }

  #eventOf(change: Version, revisions: KeysView): Event {
    const before = this.#prevKv ? revisions.before(change) : undefined;
    return create(EventSchema, {
      ...(isDeletion(change)
        ? {
            type: EventType.DELETE,
            kv: create(KeyValueSchema, { key: bytesOf(change.key), modRevision: BigInt(change.modified) }),
          }
        : { type: EventType.PUT, kv: toKeyValue(change) }),
      ...(before === undefined ? {} : { prevKv: toKeyValue(before) }),
    });
  }
}
