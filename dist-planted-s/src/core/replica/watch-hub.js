import { faults } from "#core-faults";
import { CoreError, refusalFor } from "../state/errors.js";
import { rangeOf, singleKey } from "../state/keys.js";
import { WatchStream } from "./watch-stream.js";
import { Watcher } from "./watcher.js";
/** What it costs to look after a watch, beside what it looks at. */
const unitsPerWatch = 4;
/** A quiet watch that asked for it hears so often that it is up to date: etcd's ten minutes. */
const progressNotifyMs = 600_000;
/** For a watch that could not be made. */
const noWatch = -1n;
/**
 * All watches on this server. Each hears of every change of its keys once, in the order of revisions, from the revision on
 * that it names. A watch that has caught up gets changes as they are applied; one that begins in the past, or whose client is
 * slow, reads from history until it has caught up.
 */
export class WatchHub {
    #context;
    #streams = new Map();
    #answers = [];
    /** Synced watches of one key, and all other synced ones. */
    #ofKey = new Map();
    #ofRange = new Set();
    /** In turn; without those whose clients are slow. */
    #behind = new Set();
    /** Synced, and there is something for them. */
    #touched = new Set();
    #progressAsked = new Set();
    #count = 0;
    /** Of the watches that are behind: those whose clients take nothing. */
    #stalled = 0;
    constructor(context) {
        this.#context = context;
    }
    get count() {
        return this.#count;
    }
    get behind() {
        return this.#behind.size + this.#stalled;
    }
    /** There are changes in history that have not been looked at, and clients that would take them. */
    get isReading() {
        return this.#behind.size > 0;
    }
    // Requests
    request(streamNumber, { requestUnion: asked }) {
        const stream = this.#streamOf(streamNumber);
        this.#attempt(stream, () => {
            if (asked.case === "createRequest")
                this.#create(stream, asked.value);
            else if (asked.case === "cancelRequest")
                this.#cancel(stream, asked.value.watchId);
            else if (asked.case === "progressRequest")
                this.#progressAsked.add(stream);
        });
    }
    /** What goes wrong with one stream ends that stream: its client goes on at another, from where it was. */
    #attempt(stream, body) {
        if (this.#streams.get(stream.number) !== stream)
            return;
        try {
            body();
        }
        catch (error) {
            this.closed(stream.number);
            this.#answers.push({ stream: stream.number, response: refusalFor(error) });
        }
    }
    sent(streamNumber, responses) {
        const stream = this.#streams.get(streamNumber);
        if (stream === undefined)
            return;
        stream.unsent = Math.max(0, stream.unsent - responses);
        if (!stream.hasRoom)
            return;
        for (const watcher of stream.stalled)
            this.#behind.add(watcher);
        this.#stalled -= stream.stalled.size;
        stream.stalled.clear();
    }
    closed(streamNumber) {
        const stream = this.#streams.get(streamNumber);
        if (stream === undefined)
            return;
        for (const watcher of stream.watchers.values())
            this.#remove(watcher);
        this.#progressAsked.delete(stream);
        this.#streams.delete(streamNumber);
    }
    #streamOf(number) {
        const known = this.#streams.get(number);
        if (known !== undefined)
            return known;
        const emit = (response) => this.#answers.push({ stream: number, response });
        const stream = new WatchStream(number, this.#context, emit);
        this.#streams.set(number, stream);
        return stream;
    }
    #create(stream, request) {
        const refuse = (cancelReason) => stream.emit({ watchId: noWatch, created: true, canceled: true, cancelReason });
        if (stream.watchers.size >= this.#context.limits.watchesPerStreamMax) {
            refuse(new CoreError("tooManyRequests").message);
            return;
        }
        if (request.watchId !== 0n && stream.watchers.has(request.watchId)) {
            refuse("mvcc: duplicate watch ID provided on the WatchStream");
            return;
        }
        const range = watchedRange(request);
        if (range.to !== undefined && range.to <= range.from) {
            refuse("mvcc: watcher range is empty");
            return;
        }
        const id = request.watchId === 0n ? stream.freeId() : request.watchId;
        const { current } = this.#context.state.revisions;
        const next = request.startRevision > 0n ? Number(request.startRevision) : current + 1;
        const watcher = new Watcher(stream, id, range, request, next);
        stream.watchers.set(id, watcher);
        this.#count += 1;
        stream.emit({ watchId: id, created: true });
        if (next > current)
            this.#sync(watcher);
        else
            this.#behind.add(watcher);
    }
    #cancel(stream, id) {
        const watcher = stream.watchers.get(id);
        if (watcher === undefined)
            return;
        stream.emitEvents(watcher, watcher.isSynced ? Infinity : watcher.next);
        this.#remove(watcher);
        stream.emit({ watchId: id, canceled: true });
    }
    // Changes
    /** What one command has changed. */
    changed(changes) {
        // More than that is read from history, in turns.
        if (changes.length > this.#context.limits.watchBatch)
            this.#unsyncAll(changes[0].modified);
        else
            this.#offer(changes);
    }
    #offer(changes) {
        const wanted = new Map();
        const offer = (watcher, change) => {
            if (!watcher.wants(change))
                return;
            const list = wanted.get(watcher);
            if (list === undefined)
                wanted.set(watcher, [change]);
            else
                list.push(change);
        };
        for (const change of changes) {
            for (const watcher of this.#ofKey.get(change.key) ?? [])
                offer(watcher, change);
            for (const watcher of this.#ofRange)
                offer(watcher, change);
        }
        for (const [watcher, list] of wanted)
            this.#attempt(watcher.stream, () => this.#tell(watcher, list));
    }
    #tell(watcher, changes) {
        if (watcher.stream.hasRoom && watcher.events.length < this.#context.limits.watchBatch) {
            for (const change of changes)
                watcher.events.push(watcher.eventOf(change, this.#context.state.revisions));
            this.#touched.add(watcher);
        }
        else if (!faults.slowWatcherSkips)
            this.#unsync(watcher, changes[0].modified);
    }
    /** The state is another, newer one: what lies between is read from its history. */
    replaced(revisionBefore) {
        this.#unsyncAll(revisionBefore + 1);
    }
    #unsyncAll(next) {
        for (const { watchers } of this.#streams.values())
            for (const watcher of watchers.values())
                if (watcher.isSynced)
                    this.#unsync(watcher, Math.max(watcher.next, next));
    }
    /** Hands out what there is. */
    take() {
        for (const watcher of this.#touched)
            this.#attempt(watcher.stream, () => watcher.stream.emitEvents(watcher, Infinity));
        this.#touched.clear();
        this.#readHistory();
        for (const stream of this.#progressAsked)
            if (stream.emitProgress())
                this.#progressAsked.delete(stream);
        const answers = this.#answers;
        this.#answers = [];
        return answers;
    }
    #readHistory() {
        const { limits, state } = this.#context;
        const { visits } = state.revisions;
        const end = visits.count + limits.unitsPerTurn;
        for (let looked = 0; visits.count + looked * unitsPerWatch < end; looked += 1) {
            const [watcher] = this.#behind;
            if (watcher === undefined)
                return;
            this.#behind.delete(watcher);
            this.#attempt(watcher.stream, () => this.#goOn(watcher));
        }
    }
    #goOn(watcher) {
        const { stream } = watcher;
        if (stream.hasRoom) {
            this.#catchUp(watcher);
            // To the end of the line.
            if (!watcher.isSynced && stream.watchers.get(watcher.id) === watcher)
                this.#behind.add(watcher);
        }
        else {
            stream.stalled.add(watcher);
            this.#stalled += 1;
        }
    }
    #catchUp(watcher) {
        const { limits, state } = this.#context;
        const { compacted, current } = state.revisions;
        const { stream } = watcher;
        if (watcher.next < compacted) {
            this.#remove(watcher);
            stream.emit({
                watchId: watcher.id,
                canceled: true,
                compactRevision: BigInt(compacted),
                cancelReason: new CoreError("compacted").message,
            });
            return;
        }
        const { unitsPerTurn, watchBatch } = limits;
        const visitsMax = faults.watchesInOneTurn ? Infinity : unitsPerTurn;
        const from = { revision: watcher.next, sub: watcher.nextSub };
        const { changes, next } = state.revisions.changesSince(from, watcher.range, watchBatch, visitsMax);
        for (const change of changes)
            if (watcher.wants(change))
                watcher.events.push(watcher.eventOf(change, state.revisions));
        stream.emitEvents(watcher, next.revision);
        watcher.next = Math.max(watcher.next, next.revision);
        watcher.nextSub = next.sub;
        if (watcher.next > current)
            this.#sync(watcher);
    }
    // Time
    tick() {
        const { nowMs } = this.#context;
        for (const stream of this.#streams.values())
            for (const watcher of stream.watchers.values()) {
                const isDue = watcher.progressNotify && watcher.lastSentMs + progressNotifyMs <= nowMs;
                if (!isDue || !watcher.isSynced || watcher.events.length > 0 || !stream.hasRoom)
                    continue;
                watcher.lastSentMs = nowMs;
                stream.emit({ watchId: watcher.id });
            }
    }
    // Synced or not
    #sync(watcher) {
        this.#behind.delete(watcher);
        watcher.isSynced = true;
        const key = singleKey(watcher.range);
        if (key === undefined) {
            this.#ofRange.add(watcher);
            return;
        }
        const set = this.#ofKey.get(key);
        if (set === undefined)
            this.#ofKey.set(key, new Set([watcher]));
        else
            set.add(watcher);
    }
    #unsync(watcher, next) {
        this.#unlist(watcher);
        watcher.isSynced = false;
        watcher.next = next;
        watcher.nextSub = 0;
        this.#behind.add(watcher);
    }
    #unlist(watcher) {
        this.#ofRange.delete(watcher);
        const key = singleKey(watcher.range);
        if (key === undefined)
            return;
        const set = this.#ofKey.get(key);
        set?.delete(watcher);
        if (set?.size === 0)
            this.#ofKey.delete(key);
    }
    #remove(watcher) {
        this.#unlist(watcher);
        this.#behind.delete(watcher);
        if (watcher.stream.stalled.delete(watcher))
            this.#stalled -= 1;
        this.#touched.delete(watcher);
        if (watcher.stream.watchers.delete(watcher.id))
            this.#count -= 1;
    }
}
/** An empty key is the first of all; with an empty end that is one key, which no client can have written. */
function watchedRange({ key, rangeEnd }) {
    return rangeOf(key.length === 0 ? new Uint8Array(1) : key, rangeEnd);
}
