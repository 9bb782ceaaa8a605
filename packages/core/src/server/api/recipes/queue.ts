import type { MessageInitShape } from "@bufbuild/protobuf";
import { Event_EventType, type KeyValue } from "leasehold/etcd/gen/etcd/kv_pb.js";
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  KV,
  Lease,
  RangeRequest_SortOrder,
  RangeRequest_SortTarget,
  type RangeResponse,
  RequestOpSchema,
  type ResponseHeader,
  type ResponseOp,
  type TxnResponse,
  Watch,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Caller } from "../calls/calls.js";
import { CallFailed, type LocalClient } from "../calls/local.js";

/** The lease of callers without one, as in etcd's recipes. */
const leaseSeconds = 60n;

const statusUnknown = 2;

type Operation = MessageInitShape<typeof RequestOpSchema>;

/** Errors of etcd's recipes have no specific status. */
export function refusal(text: string): CallFailed {
  return new CallFailed(statusUnknown, text);
}

/** A place in a queue: a key below the queue's name that is attached to a lease. */
export interface Place {
  readonly key: Uint8Array;
  readonly lease: bigint;
  readonly created: bigint;
  /** Value from an earlier request with the same lease, if that already had the place. */
  readonly before: Uint8Array | undefined;
  /** The queue was empty before it. */
  readonly isFirst: boolean;
  readonly header: ResponseHeader;
}

/**
 * Keys below a name, ordered by create revision. The first one holds the lock, or leads. This is etcd's
 * recipe, key for key, so that waiters on this server and waiters with their own clients (`etcdctl lock`)
 * share one queue.
 */
export class Queue {
  readonly #client: LocalClient;
  readonly #caller: Caller;
  readonly #prefix: Uint8Array;
  /** All keys of the queue: a slash and any suffix. */
  readonly #below: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array };

  constructor(client: LocalClient, caller: Caller, name: Uint8Array) {
    this.#client = client;
    this.#caller = caller;
    this.#prefix = Buffer.concat([name, Buffer.from("/")]);
    this.#below = { key: this.#prefix, rangeEnd: Buffer.concat([name, Buffer.from("0")]) };
  }

  /** @param given the lease; 0: a new one, which only the client refreshes */
  async take(given: bigint, value: Uint8Array): Promise<Place> {
    const lease = given === 0n ? await this.lease() : given;
    const key = Buffer.concat([this.#prefix, Buffer.from(lease.toString(16))]);
    const put: Operation = { request: { case: "requestPut", value: { key, value, lease } } };
    const get: Operation = { request: { case: "requestRange", value: { key } } };
    const first: Operation = { request: { case: "requestRange", value: this.#firstOnly } };
    const { header: told, responses } = await this.ifCreated(key, 0n, [put, first], [get, first]);
    const header = told!;
    const found = firstOf(responses[0]);
    const created = found?.createRevision ?? header.revision;
    const isFirst = firstOf(responses[1])?.createRevision === created;
    return { key, lease, created, before: found?.value, isFirst, header };
  }

  async lease(): Promise<bigint> {
    const { ID } = await this.#client.ask(Lease.method.leaseGrant, { TTL: leaseSeconds }, this.#caller);
    return ID;
  }

  /**
   * Resolves when this place is the first.
   *
   * @throws CallFailed with `lost` if the place is gone because its lease has ended or its key was deleted
   */
  async untilFirst(place: Place, lost: string, signal: AbortSignal): Promise<ResponseHeader> {
    const { created, isFirst, key } = place;
    if (isFirst) return place.header;
    for (;;) {
      const before = await this.#lastBefore(created, signal);
      const [first] = before.kvs;
      if (first === undefined) return await this.#stillThere(key, created, lost, signal);
      await this.#untilGone([first.key, key], before.header!.revision, signal);
      await this.#stillThere(key, created, lost, signal);
    }
  }

  #lastBefore(created: bigint, signal: AbortSignal): Promise<RangeResponse> {
    const order = { sortOrder: RangeRequest_SortOrder.DESCEND, sortTarget: RangeRequest_SortTarget.CREATE };
    const wanted = { ...this.#below, ...order, limit: 1n, maxCreateRevision: created - 1n };
    return this.#client.ask(KV.method.range, wanted, this.#caller, signal);
  }

  async #stillThere(
    key: Uint8Array,
    created: bigint,
    lost: string,
    signal: AbortSignal,
  ): Promise<ResponseHeader> {
    const { header, kvs } = await this.#client.ask(KV.method.range, { key }, this.#caller, signal);
    if (kvs[0]?.createRevision !== created) throw refusal(lost);
    return header!;
  }

  /**
   * Resolves when one of the keys was deleted, or the watch has missed changes: the waiter then checks again.
   */
  async #untilGone(keys: readonly Uint8Array[], revision: bigint, signal: AbortSignal): Promise<void> {
    const watching = this.#client.open(Watch.method.watch, this.#caller, signal);
    for (const key of keys) {
      const value = { key, startRevision: revision + 1n };
      watching.send({ requestUnion: { case: "createRequest", value } });
    }
    for await (const { canceled, events } of watching.answers)
      if (canceled || events.some(({ type }) => type === Event_EventType.DELETE)) return;
  }

  /** Reads the first of the queue. */
  first(signal?: AbortSignal): Promise<RangeResponse> {
    return this.#client.ask(KV.method.range, this.#firstOnly, this.#caller, signal);
  }

  get #firstOnly() {
    const order = { sortOrder: RangeRequest_SortOrder.ASCEND, sortTarget: RangeRequest_SortTarget.CREATE };
    return { ...this.#below, ...order, limit: 1n };
  }

  /** Yields each change of the first in the queue, starting with the present one. */
  async *observe(signal: AbortSignal): AsyncGenerator<{ header: ResponseHeader; kv: KeyValue }, void> {
    for (;;) {
      const { header, kvs } = await this.first(signal);
      let shown = kvs[0] === undefined ? undefined : { header: header!, kv: kvs[0] };
      // A later put belongs to the new first one.
      shown ??= await this.#nextPut(this.#below, header!.revision, signal);
      if (shown === undefined) continue;
      yield shown;
      const { key } = shown.kv;
      for await (const change of this.#changes({ key }, shown.header.revision + 1n, signal)) {
        if (change.kv === undefined) break;
        yield { header: change.header, kv: change.kv };
      }
    }
  }

  async #nextPut(
    range: object,
    revision: bigint,
    signal: AbortSignal,
  ): Promise<{ header: ResponseHeader; kv: KeyValue } | undefined> {
    for await (const { header, kv } of this.#changes(range, revision, signal))
      // One response may have more than this put: later ones are requested from there on.
      if (kv !== undefined) return { header: { ...header, revision: kv.modRevision }, kv };
    return undefined;
  }

  /** Yields puts, and undefined for a deletion. Ends when the watch has missed changes. */
  async *#changes(
    range: object,
    startRevision: bigint,
    signal: AbortSignal,
  ): AsyncGenerator<{ header: ResponseHeader; kv: KeyValue | undefined }, void> {
    const watching = this.#client.open(Watch.method.watch, this.#caller, signal);
    watching.send({ requestUnion: { case: "createRequest", value: { ...range, startRevision } } });
    for await (const { canceled, events, header } of watching.answers) {
      for (const { kv, type } of events)
        yield { header: header!, kv: type === Event_EventType.PUT ? kv : undefined };
      if (canceled) return;
    }
  }

  /** Requires that the key was created at this revision; 0: that it does not exist. */
  ifCreated(
    key: Uint8Array,
    createRevision: bigint,
    success: readonly Operation[],
    failure: readonly Operation[] = [],
  ): Promise<TxnResponse> {
    const txn = conditional([createdAs("EQUAL", createRevision, { key })], success, failure);
    return this.#client.ask(KV.method.txn, txn, this.#caller);
  }

  removeCreated(key: Uint8Array, createRevision: bigint): Promise<TxnResponse> {
    return this.ifCreated(key, createRevision, [removalOf(key)]);
  }

  /**
   * Removes the place of a waiter that gives up, which otherwise stays until its lease ends. A place that is
   * first by now is kept: another request with the same lease may have been granted it.
   */
  async leave({ created, key }: Place): Promise<void> {
    const removal = conditional([createdAs("EQUAL", created, { key })], [removalOf(key)]);
    const operation: Operation = { request: { case: "requestTxn", value: removal } };
    const isFirst = createdAs("GREATER", created - 1n, this.#below);
    const txn = conditional([isFirst], [], [operation]);
    await this.#client.ask(KV.method.txn, txn, this.#caller).catch(() => undefined);
  }

  async remove(key: Uint8Array): Promise<ResponseHeader> {
    const { header } = await this.#client.ask(KV.method.deleteRange, { key }, this.#caller);
    return header!;
  }
}

function conditional(
  compare: readonly ReturnType<typeof createdAs>[],
  success: readonly Operation[],
  failure: readonly Operation[] = [],
) {
  return { compare: [...compare], success: [...success], failure: [...failure] };
}

/** A comparison of the create revision that applies to every key of the range. */
function createdAs(
  result: "EQUAL" | "GREATER",
  createRevision: bigint,
  range: { readonly key: Uint8Array; readonly rangeEnd?: Uint8Array },
) {
  return {
    ...range,
    result: Compare_CompareResult[result],
    target: Compare_CompareTarget.CREATE,
    targetUnion: { case: "createRevision", value: createRevision } as const,
  };
}

function removalOf(key: Uint8Array): Operation {
  return { request: { case: "requestDeleteRange", value: { key } } };
}

function firstOf(answer: ResponseOp | undefined): KeyValue | undefined {
  return answer?.response.case === "responseRange" ? answer.response.value.kvs[0] : undefined;
}
