import { faults } from "#core-faults";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { append, few } from "../../lease/lists.js";
import type { Event } from "../gen/etcd/kv_pb.js";
import { type WatchResponse, WatchResponseSchema } from "../gen/etcd/rpc_pb.js";
import type { Context } from "./context.js";
import type { Watcher } from "./watcher.js";

/** In a response about progress that was asked for. */
const allWatches = -1n;

/** The watches of one client's stream, and what is on its way to it. */
export class WatchStream {
  readonly number: number;
  readonly context: Context;
  readonly watchers = new Map<bigint, Watcher>();
  /** Those of them that are behind, while the client takes nothing. */
  readonly stalled = new Set<Watcher>();
  /** Handed out, and not sent yet. */
  unsent = 0;
  readonly #emit: (response: WatchResponse) => void;
  #nextId = 0n;

  constructor(number: number, context: Context, emit: (response: WatchResponse) => void) {
    this.number = number;
    this.context = context;
    this.#emit = emit;
  }

  /** A slow client's watches wait in history, which is there anyway, instead of in a queue. */
  get hasRoom(): boolean {
    return this.unsent < this.context.limits.watchResponsesMax;
  }

  /** Never one that the server has given before on this stream, as in etcd. */
  freeId(): bigint {
    while (this.watchers.has(this.#nextId)) this.#nextId += 1n;
    const id = this.#nextId;
    this.#nextId += 1n;
    return id;
  }

  emit(fields: MessageInitShape<typeof WatchResponseSchema>): void {
    this.unsent += 1;
    this.#emit(create(WatchResponseSchema, { header: this.context.header(), ...fields }));
  }

  /** Hands out a watch's events before a revision. A revision is never split, unless the client has asked for fragments. */
  emitEvents(watcher: Watcher, before: number): void {
    const { id: watchId } = watcher;
    const { events } = watcher;
    const isWhole = ({ kv }: Event) => Number(kv!.modRevision) < before;
    if (events[0] === undefined || !isWhole(events[0])) return;
    watcher.events = before === Infinity ? [] : events.splice(events.findLastIndex(isWhole) + 1);
    watcher.lastSentMs = this.context.nowMs;
    const bytesMax = this.context.limits.fragmentBytesMax;
    let batch: Event[] = [];
    let bytes = 0;
    const emitBatch = () => {
      if (batch.length > 0) this.emit({ watchId, events: batch });
      batch = [];
      bytes = 0;
    };
    for (const revision of byRevision(events)) {
      const size = revision.reduce((sum, event) => sum + sizeOf(event), 0);
      if (bytes + size > bytesMax) emitBatch();
      if (size > bytesMax && watcher.fragment) {
        this.#emitFragments(watchId, revision, bytesMax);
        continue;
      }
      append(batch, faults.eventsSpread ? few(revision) : revision);
      bytes += size;
    }
    emitBatch();
  }

  #emitFragments(watchId: bigint, events: readonly Event[], bytesMax: number): void {
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
    this.emit({ watchId, events: piece });
  }

  /** "All there is has been sent": true only once all its watches have caught up. */
  emitProgress(): boolean {
    for (const { isSynced } of this.watchers.values()) if (!isSynced) return false;
    this.emit({ watchId: allWatches });
    return true;
  }
}

function byRevision(events: readonly Event[]): Event[][] {
  const revisions: Event[][] = [];
  for (const event of events) {
    const last = revisions.at(-1);
    if (last?.[0]?.kv?.modRevision === event.kv?.modRevision) last!.push(event);
    else revisions.push([event]);
  }
  return revisions;
}

/** Numbers and lengths beside the bytes of keys and values, about. */
const eventOverheadBytes = 64;

function sizeOf({ kv, prevKv }: Event): number {
  const bytes = (kv?.key.length ?? 0) + (kv?.value.length ?? 0);
  return eventOverheadBytes + bytes + (prevKv?.key.length ?? 0) + (prevKv?.value.length ?? 0);
}
