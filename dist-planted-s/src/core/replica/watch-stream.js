import { faults } from "#core-faults";
import { create } from "@bufbuild/protobuf";
import { append, few } from "../../lease/lists.js";
import { WatchResponseSchema } from "../gen/etcd/rpc_pb.js";
/** In a response about progress that was asked for. */
const allWatches = -1n;
/** The watches of one client's stream, and what is on its way to it. */
export class WatchStream {
    number;
    context;
    watchers = new Map();
    /** Those of them that are behind, while the client takes nothing. */
    stalled = new Set();
    /** Handed out, and not sent yet. */
    unsent = 0;
    #emit;
    #nextId = 0n;
    constructor(number, context, emit) {
        this.number = number;
        this.context = context;
        this.#emit = emit;
    }
    /** A slow client's watches wait in history, which is there anyway, instead of in a queue. */
    get hasRoom() {
        return this.unsent < this.context.limits.watchResponsesMax;
    }
    /** Never one that the server has given before on this stream, as in etcd. */
    freeId() {
        while (this.watchers.has(this.#nextId))
            this.#nextId += 1n;
        const id = this.#nextId;
        this.#nextId += 1n;
        return id;
    }
    emit(fields) {
        this.unsent += 1;
        this.#emit(create(WatchResponseSchema, { header: this.context.header(), ...fields }));
    }
    /** Hands out a watch's events before a revision. A revision is never split, unless the client has asked for fragments. */
    emitEvents(watcher, before) {
        const { id: watchId } = watcher;
        const { events } = watcher;
        const isWhole = ({ kv }) => Number(kv.modRevision) < before;
        if (events[0] === undefined || !isWhole(events[0]))
            return;
        watcher.events = before === Infinity ? [] : events.splice(events.findLastIndex(isWhole) + 1);
        watcher.lastSentMs = this.context.nowMs;
        const bytesMax = this.context.limits.fragmentBytesMax;
        let batch = [];
        let bytes = 0;
        const emitBatch = () => {
            if (batch.length > 0)
                this.emit({ watchId, events: batch });
            batch = [];
            bytes = 0;
        };
        for (const revision of byRevision(events)) {
            const size = revision.reduce((sum, event) => sum + sizeOf(event), 0);
            if (bytes + size > bytesMax)
                emitBatch();
            if (size > bytesMax && watcher.fragment) {
                this.#emitFragments(watchId, revision, bytesMax);
                continue;
            }
            append(batch, faults.eventsSpread ? few(revision) : revision);
            bytes += size;
        }
        emitBatch();
    }
    #emitFragments(watchId, events, bytesMax) {
        let piece = [];
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
    emitProgress() {
        for (const { isSynced } of this.watchers.values())
            if (!isSynced)
                return false;
        this.emit({ watchId: allWatches });
        return true;
    }
}
function byRevision(events) {
    const revisions = [];
    for (const event of events) {
        const last = revisions.at(-1);
        if (last?.[0]?.kv?.modRevision === event.kv?.modRevision)
            last.push(event);
        else
            revisions.push([event]);
    }
    return revisions;
}
/** Numbers and lengths beside the bytes of keys and values, about. */
const eventOverheadBytes = 64;
function sizeOf({ kv, prevKv }) {
    const bytes = (kv?.key.length ?? 0) + (kv?.value.length ?? 0);
    return eventOverheadBytes + bytes + (prevKv?.key.length ?? 0) + (prevKv?.value.length ?? 0);
}
