import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  WatchCreateRequest_FilterType as Filter,
  type WatchCreateRequestSchema,
  type WatchResponse,
  WatchRequestSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { rangeOf } from "@leasehold/core/inner/state/keys.js";
import type { SimRandom } from "../../kit/random.js";
import type { HeardWatch, StreamWatches, WatchWish } from "../checkers/stream-watches.js";
import { bytes } from "../world/requests.js";
import type { CoreWorld, WatchConnection } from "../world/world.js";
import { widePrefix } from "./wide-writer.js";

/** The id in a response to a progress request, and of a watch that was refused. */
const noWatch = -1n;

const watchesMost = 6;
/** Ids for clients to choose. With 0 the server chooses. */
const wantedIds = [0n, 0n, 0n, 1n, 2n, 3n, 7n];
/** The mean pause between two steps, and until the client moves to another server. */
const stepMeanMs = 250;
const stayMeanMs = 8_000;
/** The time of the last step, before the end of a run. */
const lastStepMs = 15_000;
const redialMs = 200;

/** The keys to watch: those of the wide writer, one of them, those of the registers, or all. */
const ranges = [
  [widePrefix, "w0"],
  [widePrefix, "w0"],
  [`${widePrefix}3`, ""],
  ["k", "l"],
  ["\0", "\0"],
] as const;

type CreateRequest = MessageInitShape<typeof WatchCreateRequestSchema>;

interface Asked {
  readonly watch: HeardWatch;
  readonly id: bigint;
}

/** Several watches on one stream, using all options. They are created, end, and move to other servers. */
export class StreamClient {
  readonly #world: CoreWorld;
  readonly #judge: StreamWatches;
  readonly #random: SimRandom;
  #connection: WatchConnection | undefined;
  #session = 0;
  readonly #watches = new Map<bigint, HeardWatch>();
  /** Creations without an answer, in order. */
  #asked: Asked[] = [];
  readonly #cancelled = new Set<bigint>();
  /** The last id that the server chose on this stream. */
  #lastChosen = -1n;

  constructor(world: CoreWorld, judge: StreamWatches, random: SimRandom) {
    this.#world = world;
    this.#judge = judge;
    this.#random = random;
    // Later changes were lost with the core that sent them.
    world.whenReplaced((_, keptRevision) => {
      for (const watch of this.#all) watch.next = Math.min(watch.next, keptRevision + 1);
    });
  }

  begin(): void {
    this.#connect();
    this.#goOn();
  }

  settled(): void {
    for (const watch of this.#watches.values()) this.#judge.settled(watch);
  }

  get #all(): HeardWatch[] {
    return [...this.#watches.values(), ...this.#asked.map(({ watch }) => watch)];
  }

  // The stream

  #connect(): void {
    const { nowMs, plan, servers } = this.#world;
    this.#session += 1;
    const session = this.#session;
    this.#connection?.close();
    const again = () => {
      if (session === this.#session) this.#connect();
    };
    const heard = (response: WatchResponse) => {
      if (session === this.#session) this.#heard(response);
    };
    const lost = () => this.#world.after(redialMs, again);
    this.#connection = this.#world.watch(this.#random.pick(servers), heard, lost);
    if (this.#connection === undefined) {
      lost();
      return;
    }
    const stayMs = this.#random.exponential(stayMeanMs);
    if (nowMs + stayMs + lastStepMs < plan.endMs) this.#world.after(stayMs, again);
    const watches = this.#all;
    this.#watches.clear();
    this.#cancelled.clear();
    this.#asked = [];
    this.#lastChosen = -1n;
    for (const watch of watches) this.#ask(watch, 0n);
  }

  #send(requestUnion: MessageInitShape<typeof WatchRequestSchema>["requestUnion"] & object): void {
    this.#connection?.send(create(WatchRequestSchema, { requestUnion }));
  }

  // Steps

  #goOn(): void {
    const inMs = this.#random.exponential(stepMeanMs);
    if (this.#world.nowMs + inMs + lastStepMs > this.#world.plan.endMs) return;
    this.#world.after(inMs, () => {
      this.#step();
      this.#goOn();
    });
  }

  #step(): void {
    const [id] = [...this.#watches.keys()].slice(this.#random.below(this.#watches.size + 1));
    const doing = this.#random.below(6);
    if (doing < 2) this.#send({ case: "progressRequest", value: {} });
    else if (doing < 4 || id === undefined) this.#open();
    else if (!this.#cancelled.has(id)) {
      this.#cancelled.add(id);
      this.#send({ case: "cancelRequest", value: { watchId: id } });
    }
  }

  #open(): void {
    if (this.#all.length >= watchesMost) return;
    const { compacted, current } = this.#world.reference.state.revisions;
    const start = this.#random.pick([
      0,
      Math.max(2, compacted),
      current - this.#random.below(20),
      current + 3,
    ]);
    const next = start > 0 ? start : Infinity;
    const watch = { wish: this.#wish(), next, pieces: [], sinceMs: 0, heardMs: 0, notices: 0 };
    this.#ask(watch, this.#random.pick(wantedIds));
  }

  #wish(): WatchWish {
    const often = () => this.#random.chance(0.5);
    const seldom = () => this.#random.chance(0.2);
    const [from, to] = this.#random.pick(ranges);
    const range = rangeOf(bytes(from), bytes(to));
    return {
      range,
      noPut: seldom(),
      noDelete: seldom(),
      prevKv: often(),
      fragment: often(),
      progressNotify: often(),
    };
  }

  #ask(watch: HeardWatch, id: bigint): void {
    const { noDelete, noPut, range, ...options } = watch.wish;
    watch.pieces.length = 0;
    this.#asked.push({ watch, id });
    const filters = [...(noPut ? [Filter.NOPUT] : []), ...(noDelete ? [Filter.NODELETE] : [])];
    const startRevision = watch.next === Infinity ? 0n : BigInt(watch.next);
    const value: CreateRequest = { ...keysOf(range), ...options, filters, startRevision, watchId: id };
    this.#send({ case: "createRequest", value });
  }

  // Answers

  #heard(response: WatchResponse): void {
    const { canceled, created, events, header, watchId } = response;
    if (created) this.#created(response);
    else if (watchId === noWatch) {
      for (const watch of this.#watches.values()) this.#judge.toldOfProgress(watch, Number(header!.revision));
      this.#world.counters.watchProgress += 1;
    } else {
      const watch = this.#watches.get(watchId);
      if (watch === undefined) {
        this.#world.report("watch", `the stream has no watch ${watchId}, and it hears something`);
        return;
      }
      watch.heardMs = this.#world.nowMs;
      this.#world.counters.streamEvents += events.length;
      if (response.fragment) this.#world.counters.watchFragments += 1;
      if (canceled) this.#ended(watch, response);
      else if (events.length > 0) this.#judge.heard(watch, response);
      else this.#judge.noticed(watch, Number(header!.revision));
    }
  }

  #created({ canceled, cancelReason, header, watchId }: WatchResponse): void {
    const { id, watch } = this.#asked.shift()!;
    const isTaken = id !== 0n && this.#watches.has(id);
    if (canceled !== isTaken) this.#world.report("watch", `watch ${id} was answered by: ${cancelReason}`);
    if (canceled) return;
    const isWrong = id === 0n ? watchId <= this.#lastChosen || this.#watches.has(watchId) : watchId !== id;
    if (isWrong) this.#world.report("watch", `watch ${id} has got the id ${watchId}`);
    if (id === 0n) this.#lastChosen = watchId;
    if (watch.next === Infinity) watch.next = Number(header!.revision) + 1;
    watch.sinceMs = this.#world.nowMs;
    watch.heardMs = this.#world.nowMs;
    watch.notices = 0;
    this.#watches.set(watchId, watch);
  }

  #ended(watch: HeardWatch, { cancelReason, compactRevision, watchId }: WatchResponse): void {
    this.#watches.delete(watchId);
    const isAsked = this.#cancelled.delete(watchId);
    if (compactRevision > 0n) this.#judge.compacted(watch, Number(compactRevision));
    else if (isAsked && cancelReason === "") {
      this.#world.counters.watchesCancelled += 1;
      return;
    } else if (this.#world.plan.rights !== true)
      this.#world.report("watch", `watch ${watchId} has ended, and nobody wanted that: ${cancelReason}`);
    this.#ask(watch, 0n);
  }
}

function keysOf({ from, to }: WatchWish["range"]): {
  key: Uint8Array<ArrayBuffer>;
  rangeEnd: Uint8Array<ArrayBuffer>;
} {
  // From a key on, to the last.
  return { key: bytes(from), rangeEnd: bytes(to ?? "\0") };
}
