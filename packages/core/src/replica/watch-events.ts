import { create } from "@bufbuild/protobuf";
import {
  type Event,
  Event_EventType as EventType,
  EventSchema,
  KeyValueSchema,
} from "leasehold/etcd/gen/etcd/kv_pb.js";
import { type WatchResponse, WatchResponseSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { bytesOf as bytesOfKey } from "../state/keys.js";
import { toKeyValue } from "../state/key-value.js";
import { isDeletion, type Version } from "../state/revisions.js";
import type { Context } from "./context.js";

/** @param before the version that the change replaced, if it exists and the watch asked for it */
export function eventOf(change: Version, before: Version | undefined): Event {
  return create(EventSchema, {
    ...(isDeletion(change)
      ? {
          type: EventType.DELETE,
          kv: create(KeyValueSchema, { key: bytesOfKey(change.key), modRevision: BigInt(change.modified) }),
        }
      : { type: EventType.PUT, kv: toKeyValue(change) }),
    ...(before === undefined ? {} : { prevKv: toKeyValue(before) }),
  });
}

/**
 * Shares a change's event among the watches that get it, and the whole response among those with the same
 * number on their streams (nearly always the first). Both are immutable.
 */
export class SharedEvent {
  #change: Version | undefined;
  #event: Event | undefined;
  #response: WatchResponse | undefined;
  /** Revision of the response's header. */
  #revision = 0;
  #term = 0;

  of(change: Version): Event {
    if (this.#event === undefined || this.#change !== change) this.#event = eventOf(change, undefined);
    this.#change = change;
    return this.#event;
  }

  /** A response with only this event. */
  responseOf(event: Event, watchId: bigint, context: Context): WatchResponse {
    const { current } = context.state.revisions;
    const { term } = context.leadership;
    const last = this.#response;
    const isSame = last?.events[0] === event && last.watchId === watchId;
    if (isSame && current === this.#revision && term === this.#term) return last;
    const response = create(WatchResponseSchema, { header: context.header(), watchId, events: [event] });
    [this.#response, this.#revision, this.#term] = [response, current, term];
    return response;
  }
}

/** Splits a list of events, ordered by revision, into one list per revision. */
export function byRevision(events: readonly Event[]): Event[][] {
  const revisions: Event[][] = [];
  for (const event of events) {
    const last = revisions.at(-1);
    if (last?.[0]?.kv?.modRevision === event.kv?.modRevision) last!.push(event);
    else revisions.push([event]);
  }
  return revisions;
}

export function bytesOf(events: readonly Event[]): number {
  return events.reduce((sum, event) => sum + sizeOf(event), 0);
}

/** Approximate bytes of an event in addition to its keys and values. */
export const eventOverheadBytes = 64;

export function sizeOf({ kv, prevKv }: Event): number {
  const bytes = (kv?.key.length ?? 0) + (kv?.value.length ?? 0);
  return eventOverheadBytes + bytes + (prevKv?.key.length ?? 0) + (prevKv?.value.length ?? 0);
}
