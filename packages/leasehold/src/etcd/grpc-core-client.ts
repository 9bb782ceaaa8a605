import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { KeyValue } from "./gen/etcd/kv_pb.js";
import {
  type Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  KV,
  Lease,
  LeaseGrantRequestSchema,
  LeaseRevokeRequestSchema,
  LeaseTimeToLiveRequestSchema,
  type PutRequestSchema,
  RangeRequestSchema,
  type ResponseHeader,
  type TxnResponse,
  TxnRequestSchema,
} from "./gen/etcd/rpc_pb.js";
import { FindRequestSchema, NamedLeases, RegisterRequestSchema } from "./gen/leasehold/own_pb.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Clock, World } from "../common/ports.js";
import type { Watching } from "../lease/provider.js";
import {
  type CallLimits,
  type CoreClient,
  type Entry,
  type Found,
  type Granted,
  type Listed,
  type Moment,
  type WatchListener,
  sharedLimits,
  type FoundLease,
  type NamedLeaseClient,
} from "./core-client.js";
import { CoreRefusal } from "./failure.js";
import { type Access, Servers } from "./servers.js";
import { Watches } from "./watches.js";

/**
 * Number of keys per answer. With the longest names and labels an answer stays below gRPC's limit of 4 MiB.
 */
const pageSize = 2_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A client of etcd's v3 API, for etcd and Leasehold's own core. */
export class GrpcCoreClient implements CoreClient, NamedLeaseClient {
  readonly #servers: Servers;
  readonly #watches: Watches;
  readonly #clock: Clock;

  constructor(endpoints: readonly string[], access: Access, world: World) {
    this.#servers = new Servers(endpoints, access, world);
    this.#clock = world.clock;
    this.#watches = new Watches(this.#servers, world, entryOf);
  }

  /** Resolves when any server answers, with or without a majority. */
  async connect(limits: CallLimits): Promise<void> {
    const key = encoder.encode("leasehold");
    const request = create(RangeRequestSchema, { key, serializable: true, countOnly: true });
    try {
      await this.#servers.ask(KV.method.range, request, limits);
    } catch (error) {
      // This counts as an answer: the core knows the user, who may not read this key.
      if (!(error instanceof CoreRefusal) || error.code !== "PERMISSION_DENIED") throw error;
    }
  }

  async read(key: string, limits: CallLimits): Promise<Found> {
    const answer = await this.#range({ key: encoder.encode(key) }, limits);
    return { ...momentOf(answer.header), entry: optional(answer.kvs[0]) };
  }

  async list(prefix: string, limits: CallLimits): Promise<Listed> {
    const rangeEnd = endOf(encoder.encode(prefix));
    let key = encoder.encode(prefix);
    let moment: Moment | undefined;
    const entries: Entry[] = [];
    const shared = sharedLimits(limits, this.#clock);
    for (;;) {
      // All pages are read at the revision of the first.
      const page = { key, rangeEnd, limit: BigInt(pageSize), revision: moment?.revision ?? 0n };
      const answer = await this.#range(page, shared);
      moment ??= momentOf(answer.header);
      for (const kv of answer.kvs) entries.push(entryOf(kv));
      const last = answer.kvs.at(-1);
      if (!answer.more || last === undefined) return { ...moment, entries };
      key = Uint8Array.from([...last.key, 0]);
    }
  }

  async create(
    key: string,
    value: string,
    leaseId: bigint,
    limits: CallLimits,
  ): Promise<Moment & { readonly entry: Entry }> {
    const isAbsent = {
      target: Compare_CompareTarget.CREATE,
      targetUnion: { case: "createRevision", value: 0n },
    } as const;
    const put = { key: encoder.encode(key), value: encoder.encode(value), lease: leaseId };
    const { entry, ...moment } = await this.#putIf(isAbsent, put, limits);
    if (entry === undefined) throw unexpected("a key that was just read is missing");
    return { ...moment, entry };
  }

  async replace(seen: Entry, value: string, limits: CallLimits, leaseId?: bigint): Promise<Found> {
    const isAsSeen = {
      target: Compare_CompareTarget.MOD,
      targetUnion: { case: "modRevision", value: seen.modRevision },
    } as const;
    const lease = leaseId === undefined ? { ignoreLease: true } : { lease: leaseId };
    const put = { key: encoder.encode(seen.key), value: encoder.encode(value), ...lease };
    return this.#putIf(isAsSeen, put, limits);
  }

  async grantLease(leaseId: bigint, seconds: number, limits: CallLimits): Promise<Granted> {
    const request = create(LeaseGrantRequestSchema, { ID: leaseId, TTL: BigInt(seconds) });
    try {
      const { header, TTL } = await this.#servers.ask(Lease.method.leaseGrant, request, limits);
      return { ...momentOf(header), seconds: Number(TTL) };
    } catch (error) {
      if (!(error instanceof CoreRefusal) || !error.isDuplicate) throw error;
      // Ids are unique, so an earlier request, whose answer was lost, granted this lease. A refresh returns
      // its TTL.
      return this.refreshLease(leaseId, limits);
    }
  }

  async registerLease(name: string, id: bigint, seconds: number, limits: CallLimits): Promise<FoundLease> {
    const request = create(RegisterRequestSchema, { name, id, ttl: BigInt(seconds) });
    try {
      const answer = await this.#servers.ask(NamedLeases.method.register, request, limits);
      return { id: answer.id, seconds: Number(answer.ttl) };
    } catch (error) {
      if (!(error instanceof CoreRefusal) || !(error.isTaken || error.isDuplicate)) throw error;
      return (await this.findLease(name, limits)) ?? { id: 0n, seconds: 0 };
    }
  }

  async findLease(name: string, limits: CallLimits): Promise<FoundLease | undefined> {
    const request = create(FindRequestSchema, { name });
    try {
      const { id, grantedTtl } = await this.#servers.ask(NamedLeases.method.find, request, limits);
      return { id, seconds: Number(grantedTtl) };
    } catch (error) {
      if (error instanceof CoreRefusal && error.isNotFound) return undefined;
      throw error;
    }
  }

  async revokeLease(leaseId: bigint, limits: CallLimits): Promise<void> {
    const request = create(LeaseRevokeRequestSchema, { ID: leaseId });
    try {
      await this.#servers.ask(Lease.method.leaseRevoke, request, limits);
    } catch (error) {
      if (!(error instanceof CoreRefusal) || !error.isNotFound) throw error;
    }
  }

  async refreshLease(leaseId: bigint, limits: CallLimits): Promise<Granted> {
    const { header, TTL } = await this.#servers.refresh(leaseId, limits);
    return { ...momentOf(header), seconds: Number(TTL) };
  }

  async leaseLife(leaseId: bigint, limits: CallLimits): Promise<{ readonly seconds: number }> {
    const request = create(LeaseTimeToLiveRequestSchema, { ID: leaseId });
    const { TTL } = await this.#servers.ask(Lease.method.leaseTimeToLive, request, limits);
    return { seconds: Number(TTL) };
  }

  watch(
    { key, isPrefix }: { readonly key: string; readonly isPrefix: boolean },
    fromRevision: bigint,
    listener: WatchListener,
  ): Watching {
    const bytes = encoder.encode(key);
    return this.#watches.add(bytes, isPrefix ? endOf(bytes) : new Uint8Array(), fromRevision, listener);
  }

  close(): void {
    this.#watches.close();
    this.#servers.close();
  }

  #range(request: MessageInitShape<typeof RangeRequestSchema>, limits: CallLimits) {
    return this.#servers.ask(KV.method.range, create(RangeRequestSchema, request), limits);
  }

  /** Puts the key if the condition holds, and reads it in the same transaction. */
  async #putIf(condition: Condition, put: Put, limits: CallLimits): Promise<Found> {
    const { key } = put;
    const look = { request: { case: "requestRange", value: { key } } } as const;
    const request = create(TxnRequestSchema, {
      compare: [{ key, result: Compare_CompareResult.EQUAL, ...condition }],
      success: [{ request: { case: "requestPut", value: put } }, look],
      failure: [look],
    });
    return foundIn(await this.#servers.ask(KV.method.txn, request, limits));
  }
}

type Condition = Pick<Compare, "target" | "targetUnion">;
type Put = MessageInitShape<typeof PutRequestSchema> & { readonly key: Uint8Array<ArrayBuffer> };

/** The read is the last operation of either branch. */
function foundIn({ header, responses }: TxnResponse): Found {
  const last = responses.at(-1)?.response;
  if (last?.case !== "responseRange")
    throw unexpected("the answer to a transaction lacks the read at its end");
  return { ...momentOf(header), entry: optional(last.value.kvs[0]) };
}

function momentOf(header: ResponseHeader | undefined): Moment {
  if (header === undefined) throw unexpected("an answer has no header");
  return { revision: header.revision, term: header.raftTerm };
}

function entryOf(kv: KeyValue): Entry {
  return {
    key: decoder.decode(kv.key),
    value: decoder.decode(kv.value),
    createRevision: kv.createRevision,
    modRevision: kv.modRevision,
    leaseId: kv.lease,
  };
}

function optional(kv: KeyValue | undefined): Entry | undefined {
  return kv === undefined ? undefined : entryOf(kv);
}

/** Returns the end of the range of keys with this prefix. Bytes of UTF-8 are below 0xff. */
function endOf(prefix: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const end = prefix.slice();
  end[end.length - 1]! += 1;
  return end;
}

function unexpected(what: string): LeaseholdError {
  return new LeaseholdError("UNSUPPORTED", `the core does not speak etcd's v3 API: ${what}`);
}
