import { create } from "@bufbuild/protobuf";
import { Event_EventType as EventType, EventSchema, KeyValueSchema } from "../gen/etcd/kv_pb.js";
import { WatchCreateRequest_FilterType as Filter } from "../gen/etcd/rpc_pb.js";
import { bytesOf, contains } from "../state/keys.js";
import { toKeyValue } from "../state/range.js";
import { isDeletion } from "../state/revisions.js";
/** One watch of a client. */
export class Watcher {
    id;
    stream;
    range;
    fragment;
    progressNotify;
    #noPut;
    #noDelete;
    #prevKv;
    /** Everything before it has been handed out, or was not asked for. */
    next;
    /** So many changes of revision `next` have been looked at. */
    nextSub = 0;
    /** Gets each change as it is applied. Otherwise it reads from history, from `next` on, until it has caught up. */
    isSynced = false;
    /** To be handed out, in order: whole revisions, and of a watch that is behind perhaps a part of revision `next`. */
    events = [];
    lastSentMs;
    constructor(stream, id, range, request, next) {
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
    wants(change) {
        if (change.modified < this.next || !contains(this.range, change.key))
            return false;
        return !(isDeletion(change) ? this.#noDelete : this.#noPut);
    }
    eventOf(change, revisions) {
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
