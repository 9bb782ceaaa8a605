import { create } from "@bufbuild/protobuf";
import { backOffMs } from "../common/back-off.js";
import { Event_EventType, type KeyValue } from "./gen/etcd/kv_pb.js";
import {
  Watch,
  WatchCancelRequestSchema,
  WatchCreateRequestSchema,
  type WatchRequest,
  WatchRequestSchema,
  type WatchResponse,
} from "./gen/etcd/rpc_pb.js";
import type { Timer, World } from "../common/ports.js";
import type { Watching } from "../lease/provider.js";
import type { Entry, WatchListener } from "./core-client.js";
import { isTokenOver, type Servers, type Stream } from "./servers.js";

/**
 * Bound of the random pause before a stream is reopened at the next server, ms. It doubles up to the maximum.
 */
const pauseMsBase = 20;
const pauseMsMax = 2_000;

/** The pause before a refused watch is requested again, ms. */
const refusedMs = 5_000;

/** Timeout for obtaining the token of the next stream, ms. */
const renewMs = 5_000;

/**
 * Watches of single keys on the stream: a server may allow no more than 10,000. Without a watch, renewals and
 * retries notice changes later.
 */
const watchesMax = 9_000;

/** The id in a server's refusal of a watch. */
const refusedId = -1n;

/** A watch that does nothing. */
const none: Watching = { stop: () => undefined };

interface Watched {
  id: bigint;
  readonly key: Uint8Array<ArrayBuffer>;
  readonly rangeEnd: Uint8Array<ArrayBuffer>;
  readonly listener: WatchListener;
  /** The first revision that has not been delivered. */
  nextRevision: bigint;
}

/**
 * All watches of one participant, on one stream. When the stream ends, they continue at another server from
 * where they were.
 */
export class Watches {
  readonly #servers: Servers;
  readonly #world: World;
  readonly #entryOf: (kv: KeyValue) => Entry;
  readonly #watched = new Map<bigint, Watched>();
  #lastId = 0n;
  #stream: Stream<typeof WatchRequestSchema> | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  /** Requests on the stream without an answer: answers come in the order of the requests. */
  #unanswered: bigint[] = [];
  #isRenewing = false;

  constructor(servers: Servers, world: World, entryOf: (kv: KeyValue) => Entry) {
    this.#servers = servers;
    this.#world = world;
    this.#entryOf = entryOf;
  }

  add(
    key: Uint8Array<ArrayBuffer>,
    rangeEnd: Uint8Array<ArrayBuffer>,
    fromRevision: bigint,
    listener: WatchListener,
  ): Watching {
    if (this.#watched.size >= watchesMax && rangeEnd.length === 0) return none;
    const watched = { id: 0n, key, rangeEnd, listener, nextRevision: fromRevision };
    this.#number(watched);
    if (this.#stream !== undefined) this.#create(watched);
    else if (this.#timer === undefined && !this.#isRenewing) this.#open();
    return {
      stop: () => {
        const { id: watchId } = watched;
        if (!this.#watched.delete(watchId)) return;
        const value = create(WatchCancelRequestSchema, { watchId });
        this.#stream?.send(create(WatchRequestSchema, { requestUnion: { case: "cancelRequest", value } }));
      },
    };
  }

  close(): void {
    this.#watched.clear();
    this.#timer?.cancel();
    this.#stream?.close();
    this.#stream = undefined;
  }

  #open(): void {
    this.#timer = undefined;
    // A closed stream may still deliver events.
    const own = this.#servers.open(
      Watch.method.watch,
      (answer) => this.#heard(answer),
      () => {
        if (this.#stream === own) this.#lost();
      },
    );
    this.#stream = own;
    this.#unanswered = [];
    for (const watched of this.#watched.values()) this.#create(watched);
  }

  #lost(): void {
    this.#stream = undefined;
    if (this.#watched.size === 0) return;
    const delayMs = backOffMs(this.#world.random, this.#failures++, pauseMsBase, pauseMsMax);
    this.#timer = this.#world.timers.after(delayMs, () => this.#open());
  }

  /**
   * Gives the watch a new id: on the same stream a server does not accept an id again, even after cancelling
   * that watch itself.
   */
  #number(watched: Watched): void {
    this.#watched.delete(watched.id);
    watched.id = this.#lastId += 1n;
    this.#watched.set(watched.id, watched);
  }

  #create({ id: watchId, key, rangeEnd, nextRevision }: Watched): void {
    if (this.#stream === undefined) return;
    const value = create(WatchCreateRequestSchema, { key, rangeEnd, watchId, startRevision: nextRevision });
    const request: WatchRequest = create(WatchRequestSchema, {
      requestUnion: { case: "createRequest", value },
    });
    this.#unanswered.push(watchId);
    this.#stream.send(request);
  }

  #heard(answer: WatchResponse): void {
    if (!answer.canceled) this.#failures = 0;
    const asked = answer.created ? this.#unanswered.shift() : undefined;
    const watched = this.#watched.get(answer.watchId === refusedId ? (asked ?? refusedId) : answer.watchId);
    if (watched === undefined) return;
    if (answer.canceled) {
      this.#cancelled(answer, watched);
      return;
    }
    for (const { type, kv } of answer.events) {
      // A new stream may repeat changes.
      if (kv === undefined || kv.modRevision < watched.nextRevision) continue;
      const entry = this.#entryOf(kv);
      if (type === Event_EventType.DELETE) watched.listener.deleted(entry.key, entry.modRevision);
      else watched.listener.written(entry);
    }
    const last = answer.events.at(-1)?.kv;
    // A revision is never split between two answers, but the header's revision may be ahead of the delivered
    // changes.
    if (last !== undefined && last.modRevision >= watched.nextRevision)
      watched.nextRevision = last.modRevision + 1n;
  }

  /** A stream keeps the token that it was opened with. */
  #reopen(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#stream = undefined;
    stream.close();
    this.#isRenewing = true;
    void this.#servers.renewToken({ timeoutMs: renewMs }).then(() => {
      this.#isRenewing = false;
      this.#lost();
    });
  }

  /** The server cancelled the watch: either its revisions have been compacted, or the server refuses it. */
  #cancelled({ cancelReason, compactRevision }: WatchResponse, watched: Watched): void {
    this.#number(watched);
    if (isTokenOver(cancelReason)) {
      this.#reopen();
      return;
    }
    if (compactRevision === 0n) {
      const stream = this.#stream;
      this.#world.timers.after(refusedMs, () => {
        // A stream opened since then already has the watch.
        if (this.#stream === stream && this.#watched.get(watched.id) === watched) this.#create(watched);
      });
      return;
    }
    watched.nextRevision = compactRevision;
    this.#create(watched);
    watched.listener.missed(watched.nextRevision);
  }
}
