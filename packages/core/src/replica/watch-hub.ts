import type { WatchCreateRequest, WatchResponse } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CoreError, refusalFor, tooManyRequests } from "../state/errors.js";
import { type Key, type KeyRange, rangeOf, singleKey } from "../state/keys.js";
import type { Changes, Place, Version } from "../state/revisions.js";
import type { Context } from "./context.js";
import { Room } from "leasehold/common";
import type { Callers } from "./callers.js";
import type { Credentials, Input, WatchAnswer } from "./types.js";
import { SharedEvent } from "./watch-events.js";
import { Watcher, WatchStream } from "./watch-stream.js";

/** Units that a watch costs in addition to the changes it visits. */
const unitsPerWatch = 4;
/**
 * Number of watches without fragments that may be in a revision larger than a batch: each buffers all of it.
 */
const gatheringMax = 4;
/** Units for checking whether one watch wants one change. */
const unitsPerOffer = 1 / 16;
/** Number of turns that one command may take for watches at once; beyond that, they read from history. */
const turnsOfOffers = 2;
/** Watch id for a watch that could not be created. */
const noWatch = -1n;

/**
 * All watches on this server. Each gets every change of its keys once, in the order of revisions, from its
 * start revision on. A watch that has caught up gets changes as they are applied. One that begins in the
 * past, or has a slow client, reads from history until it has caught up.
 */
export class WatchHub {
  readonly #context: Context;
  readonly #callers: Callers;
  readonly #streams = new Map<number, WatchStream>();
  #answers: WatchAnswer[] = [];
  /** Synced watches of one key, and all other synced ones. */
  readonly #ofKey = new Map<Key, Set<Watcher>>();
  readonly #ofRange = new Set<Watcher>();
  /** Unsynced watches, which take turns; without those of slow clients. */
  readonly #behind = new Set<Watcher>();
  /** Synced watches with pending events. */
  readonly #touched = new Set<Watcher>();
  readonly #event = new SharedEvent();
  readonly #progressAsked = new Set<WatchStream>();
  #count = 0;
  /** Number of unsynced watches whose clients accept nothing. */
  #stalled = 0;
  /** Bytes of unsent responses, and of the watches themselves. */
  readonly #unsentBytes: Room;
  readonly #watchBytes: Room;
  /** Watches in a revision larger than a batch, and watches that wait for a place among them. */
  readonly #gathering = new Set<Watcher>();
  readonly #waiting = new Set<Watcher>();

  constructor(context: Context, callers: Callers) {
    this.#context = context;
    this.#callers = callers;
    this.#unsentBytes = new Room(context.limits.watchBytesTotalMax, tooManyRequests);
    this.#watchBytes = new Room(context.limits.watchesBytesMax, tooManyRequests);
  }

  get count(): number {
    return this.#count;
  }

  get behind(): number {
    return this.#behind.size + this.#stalled + this.#waiting.size;
  }

  /** History has unread changes for clients that would accept them. */
  get isReading(): boolean {
    return this.#behind.size > 0 || (this.#waiting.size > 0 && this.#gathering.size < gatheringMax);
  }

  // Requests

  request(input: Extract<Input, { kind: "watch" }>): void {
    const { requestUnion: asked } = input.request;
    const stream = this.#streamOf(input);
    this.#endOnError(stream, () => {
      if (this.#context.isLearner) throw new CoreError("notForLearner");
      if (asked.case === "createRequest") this.#create(stream, asked.value, input.credentials);
      else if (asked.case === "cancelRequest") this.#cancel(stream, asked.value.watchId);
      else if (asked.case === "progressRequest") this.#progressAsked.add(stream);
    });
  }

  /** An error in one stream ends that stream: its client resumes on another. */
  #endOnError(stream: WatchStream, body: () => void): void {
    if (this.#streams.get(stream.number) !== stream) return;
    try {
      body();
    } catch (error) {
      this.closed(stream.number);
      this.#answers.push({ stream: stream.number, response: refusalFor(error) });
    }
  }

  sent(streamNumber: number, responses: number): void {
    const stream = this.#streams.get(streamNumber);
    if (stream === undefined) return;
    stream.sent(responses);
    this.#wake(stream);
  }

  #wake(stream: WatchStream): void {
    if (stream.stalled.size === 0 || !stream.hasRoom) return;
    for (const watcher of stream.stalled) this.#behind.add(watcher);
    this.#stalled -= stream.stalled.size;
    stream.stalled.clear();
  }

  closed(streamNumber: number): void {
    const stream = this.#streams.get(streamNumber);
    if (stream === undefined) return;
    for (const watcher of stream.watchers.values()) this.#remove(watcher);
    stream.closed();
    this.#progressAsked.delete(stream);
    this.#streams.delete(streamNumber);
  }

  #streamOf(named: { readonly stream: number; readonly client: string }): WatchStream {
    const known = this.#streams.get(named.stream);
    if (known !== undefined) return known;
    const emit = (response: WatchResponse) => this.#answers.push({ stream: named.stream, response });
    const stream = new WatchStream(named, this.#context, this.#unsentBytes, this.#event, emit);
    this.#streams.set(named.stream, stream);
    return stream;
  }

  #create(stream: WatchStream, request: WatchCreateRequest, credentials: Credentials | undefined): void {
    const refuse = (cancelReason: string) =>
      stream.emit({ watchId: noWatch, created: true, canceled: true, cancelReason });
    if (!this.#callers.hasCaughtUp) throw new CoreError("noLeader");
    const range = watchedRange(request);
    let user: string | undefined;
    try {
      user = this.#callers.checkWatch(range, credentials);
    } catch (error) {
      refuse(refusalFor(error).grpcText);
      return;
    }
    if (stream.watchers.size >= this.#context.limits.watchesPerStreamMax) {
      refuse(tooManyRequests().message);
      return;
    }
    if (request.watchId !== 0n && stream.watchers.has(request.watchId)) {
      refuse("mvcc: duplicate watch ID provided on the WatchStream");
      return;
    }
    if (range.to !== undefined && range.to <= range.from) {
      refuse("mvcc: watcher range is empty");
      return;
    }
    const id = request.watchId === 0n ? stream.freeId() : request.watchId;
    const { current } = this.#context.state.revisions;
    const next = request.startRevision > 0n ? Number(request.startRevision) : current + 1;
    const watcher = new Watcher(stream, id, range, request, next);
    if (!this.#watchBytes.tryTake(stream.client, watcher.bytes)) {
      refuse(this.#watchBytes.refusal(stream.client).message);
      return;
    }
    watcher.user = user;
    watcher.rights = this.#context.state.auth.rights;
    stream.watchers.set(id, watcher);
    this.#count += 1;
    stream.emit({ watchId: id, created: true });
    if (next > current) this.#sync(watcher);
    else this.#behind.add(watcher);
  }

  #cancel(stream: WatchStream, id: bigint): void {
    const watcher = stream.watchers.get(id);
    if (watcher === undefined) return;
    stream.emitEvents(watcher, watcher.isSynced ? Infinity : watcher.next);
    this.#remove(watcher);
    stream.emit({ watchId: id, canceled: true });
  }

  // Changes

  /** Publishes the changes of one command. */
  changed(changes: readonly Version[]): void {
    const { limits, state } = this.#context;
    const { visits } = state.revisions;
    const offers = changes.length * (1 + this.#ofRange.size);
    // A larger command is read from history, in turns.
    if (changes.length > limits.watchBatch || offers * unitsPerOffer > limits.unitsPerTurn * turnsOfOffers) {
      this.#unsyncAll(changes[0]!.modified);
      return;
    }
    const wanted = this.#wanted(changes);
    let total = 0;
    for (const list of wanted.values()) total += list.length;
    const isMuch = total > limits.unitsPerTurn * turnsOfOffers;
    visits.count += Math.ceil(offers * unitsPerOffer) + (isMuch ? wanted.size : total);
    for (const [watcher, list] of wanted) {
      if (isMuch) this.#unsync(watcher, changes[0]!.modified);
      else this.#endOnError(watcher.stream, () => this.#deliver(watcher, list));
    }
  }

  #wanted(changes: readonly Version[]): Map<Watcher, Version[]> {
    const wanted = new Map<Watcher, Version[]>();
    const only = [...changes];
    const offer = (watcher: Watcher, change: Version) => {
      if (!watcher.wants(change)) return;
      const list = wanted.get(watcher);
      if (list === undefined) wanted.set(watcher, changes.length === 1 ? only : [change]);
      else list.push(change);
    };
    for (const change of changes) {
      for (const watcher of this.#ofKey.get(change.key) ?? []) offer(watcher, change);
      for (const watcher of this.#ofRange) offer(watcher, change);
    }
    return wanted;
  }

  #deliver(watcher: Watcher, changes: readonly Version[]): void {
    if (watcher.stream.hasRoom && watcher.events.length < this.#context.limits.watchBatch) {
      for (const change of changes) watcher.add(change, this.#context.state.revisions, this.#event);
      this.#touched.add(watcher);
    } else this.#unsync(watcher, changes[0]!.modified);
  }

  /** Each watch is checked before it gets anything more: see `#catchUp`. */
  rightsChanged(): void {
    this.#unsyncAll(this.#context.state.revisions.current + 1);
  }

  /** Another user may get the same name, and must not inherit this one's watches. */
  userDeleted(name: string): void {
    for (const { watchers } of this.#streams.values())
      for (const watcher of watchers.values()) if (watcher.user === name) watcher.isOrphaned = true;
  }

  /**
   * The state was replaced by a newer one: the changes in between are read from its history.
   *
   * @param usersMayDiffer a name may now belong to another user
   */
  replaced(revisionBefore: number, usersMayDiffer: boolean): void {
    if (usersMayDiffer)
      for (const { watchers } of this.#streams.values())
        for (const watcher of watchers.values()) watcher.isOrphaned = watcher.user !== undefined;
    this.#unsyncAll(revisionBefore + 1);
  }

  #unsyncAll(next: number): void {
    for (const { watchers } of this.#streams.values())
      for (const watcher of watchers.values()) if (watcher.isSynced) this.#unsync(watcher, next);
  }

  /** Takes pending responses. */
  take(): readonly WatchAnswer[] {
    for (const watcher of this.#touched)
      this.#endOnError(watcher.stream, () => watcher.stream.emitEvents(watcher, Infinity));
    this.#touched.clear();
    this.#readHistory();
    for (const stream of this.#progressAsked) if (stream.emitProgress()) this.#progressAsked.delete(stream);
    const answers = this.#answers;
    this.#answers = [];
    return answers;
  }

  #readHistory(): void {
    const { limits, state } = this.#context;
    this.#endWaiting();
    const { visits } = state.revisions;
    const end = visits.count + limits.unitsPerTurn;
    for (let looked = 0; visits.count + looked * unitsPerWatch < end; looked += 1) {
      const [watcher] = this.#behind;
      if (watcher === undefined) return;
      this.#behind.delete(watcher);
      this.#endOnError(watcher.stream, () => this.#goOn(watcher));
    }
  }

  #goOn(watcher: Watcher): void {
    const { stream } = watcher;
    if (stream.hasRoom) {
      this.#catchUp(watcher);
      const isThere = stream.watchers.get(watcher.id) === watcher;
      // Moves to the end of the queue.
      if (isThere && !watcher.isSynced && !this.#waiting.has(watcher)) this.#behind.add(watcher);
    } else {
      if (this.#gathering.has(watcher)) this.#beginAgain(watcher);
      stream.stalled.add(watcher);
      this.#stalled += 1;
    }
  }

  /** Gives way to others, even if all of this must be read again. */
  #beginAgain(watcher: Watcher): void {
    watcher.beginAgain();
    this.#gathering.delete(watcher);
  }

  /**
   * Lets as many waiting watches continue as there are free places. Places are not passed on to a certain
   * watch: it may be cancelled or closed, or find no room in its stream, and its place would be lost.
   */
  #endWaiting(): void {
    let places = gatheringMax - this.#gathering.size;
    for (const watcher of this.#waiting) {
      if (places <= 0) return;
      places -= 1;
      this.#waiting.delete(watcher);
      this.#behind.add(watcher);
    }
  }

  #catchUp(watcher: Watcher): void {
    const { limits, state } = this.#context;
    const { compacted, current } = state.revisions;
    const { stream } = watcher;
    if (!this.#mayGoOn(watcher)) return;
    if (watcher.next < compacted) {
      this.#remove(watcher);
      // As in etcd, the answer has no revision except the one to continue from, and no reason.
      const header = { ...this.#context.header(), revision: 0n };
      stream.emit({ header, watchId: watcher.id, canceled: true, compactRevision: BigInt(compacted) });
      return;
    }
    const { unitsPerTurn, watchBatch } = limits;
    const from = { revision: watcher.next, sub: watcher.nextSub };
    const found = state.revisions.changesSince(from, watcher.range, watchBatch, unitsPerTurn);
    const next = this.#addWanted(watcher, found);
    stream.emitEvents(watcher, next.revision);
    watcher.next = Math.max(watcher.next, next.revision);
    watcher.nextSub = next.sub;
    if (next.sub > 0) this.#interrupted(watcher, next.revision === from.revision);
    else this.#gathering.delete(watcher);
    if (watcher.next > current) this.#sync(watcher);
  }

  /** Returns false if the user may no longer read all of the watch's keys: the watch is then cancelled. */
  #mayGoOn(watcher: Watcher): boolean {
    const { isEnabled, rights } = this.#context.state.auth;
    if (watcher.rights === rights) return true;
    try {
      if (watcher.isOrphaned && isEnabled) throw new CoreError("permissionDenied");
      this.#callers.recheckWatch(watcher.range, watcher.user);
      watcher.rights = rights;
      return true;
    } catch (error) {
      this.#remove(watcher);
      const cancelReason = refusalFor(error).grpcText;
      watcher.stream.emit({ watchId: watcher.id, canceled: true, cancelReason });
      return false;
    }
  }

  /** @returns where to continue: the result may exceed one response */
  #addWanted(watcher: Watcher, { changes, next }: Changes): Place {
    const { limits, state } = this.#context;
    const bytesMax = watcher.eventBytes + limits.fragmentBytesMax;
    for (const change of changes) {
      if (watcher.eventBytes > bytesMax) return { revision: change.modified, sub: change.sub };
      if (watcher.wants(change)) watcher.add(change, state.revisions, this.#event);
    }
    return next;
  }

  /**
   * The watch stopped within a revision.
   * @param isLong the revision is larger than a batch
   */
  #interrupted(watcher: Watcher, isLong: boolean): void {
    const { stream } = watcher;
    if (!isLong) this.#beginAgain(watcher);
    else if (watcher.fragment) stream.emitPart(watcher);
    else if (watcher.eventBytes > this.#context.limits.revisionBytesMax) {
      this.#remove(watcher);
      const cancelReason = new CoreError("watchTooLarge").message;
      stream.emit({ watchId: watcher.id, canceled: true, cancelReason });
    } else if (!this.#gathering.has(watcher)) {
      if (this.#gathering.size < gatheringMax) this.#gathering.add(watcher);
      else {
        watcher.beginAgain();
        this.#waiting.add(watcher);
      }
    }
  }

  // Time

  tick(): void {
    const { limits, nowMs } = this.#context;
    for (const stream of this.#streams.values()) {
      // Other streams may have made room.
      this.#wake(stream);
      for (const watcher of stream.watchers.values()) {
        const isDue = watcher.progressNotify && watcher.lastSentMs + limits.progressNotifyMs <= nowMs;
        if (!isDue || !watcher.isSynced || watcher.events.length > 0 || !stream.hasRoom) continue;
        watcher.lastSentMs = nowMs;
        stream.emit({ watchId: watcher.id });
      }
    }
  }

  #sync(watcher: Watcher): void {
    this.#behind.delete(watcher);
    watcher.isSynced = true;
    const key = singleKey(watcher.range);
    if (key === undefined) {
      this.#ofRange.add(watcher);
      return;
    }
    const set = this.#ofKey.get(key);
    if (set === undefined) this.#ofKey.set(key, new Set([watcher]));
    else set.add(watcher);
  }

  /** @param next revision of the first change that the watch lacks, unless it begins in the future */
  #unsync(watcher: Watcher, next: number): void {
    this.#unlist(watcher);
    watcher.isSynced = false;
    watcher.next = Math.max(watcher.next, next);
    watcher.nextSub = 0;
    this.#behind.add(watcher);
  }

  #unlist(watcher: Watcher): void {
    this.#ofRange.delete(watcher);
    const key = singleKey(watcher.range);
    if (key === undefined) return;
    const set = this.#ofKey.get(key);
    set?.delete(watcher);
    if (set?.size === 0) this.#ofKey.delete(key);
  }

  #remove(watcher: Watcher): void {
    this.#unlist(watcher);
    this.#behind.delete(watcher);
    this.#waiting.delete(watcher);
    this.#gathering.delete(watcher);
    if (watcher.stream.stalled.delete(watcher)) this.#stalled -= 1;
    this.#touched.delete(watcher);
    if (!watcher.stream.watchers.delete(watcher.id)) return;
    this.#count -= 1;
    this.#watchBytes.release(watcher.stream.client, watcher.bytes);
  }
}

/**
 * An empty key stands for the first possible key. With an empty end that is a single key, which no client can
 * have written.
 */
function watchedRange({ key, rangeEnd }: WatchCreateRequest): KeyRange {
  return rangeOf(key.length === 0 ? new Uint8Array(1) : key, rangeEnd);
}
