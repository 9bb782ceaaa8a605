import { type MessageInitShape, create } from "@bufbuild/protobuf";
import {
  CompactionRequestSchema,
  Compare_CompareResult as Result,
  Compare_CompareTarget as Target,
  CompareSchema,
  DeleteRangeRequestSchema,
  LeaseGrantRequestSchema,
  LeaseLeasesRequestSchema,
  LeaseRevokeRequestSchema,
  LeaseTimeToLiveRequestSchema,
  PutRequestSchema,
  RangeRequest_SortOrder as Order,
  RangeRequest_SortTarget as SortTarget,
  RangeRequestSchema,
  type RequestOp,
  RequestOpSchema,
  type TxnRequest,
  TxnRequestSchema,
  WatchCreateRequest_FilterType as Filter,
  WatchCreateRequestSchema,
} from "../../../src/core/gen/etcd/rpc_pb.js";
import { Xorshift } from "../../../src/common/xorshift.js";
import { bytes } from "../support/client.js";

export interface RandomRequest {
  readonly service: "KV" | "Lease";
  readonly method: string;
  readonly request: unknown;
}

const sortTargets = [
  SortTarget.KEY,
  SortTarget.VERSION,
  SortTarget.CREATE,
  SortTarget.MOD,
  SortTarget.VALUE,
] as const;

/** Few keys and leases, so that requests meet; now and then one that must be refused. */
export class RandomRequests {
  readonly #random: Xorshift;
  /** About where the servers are, from where they began: requests of the past, of the present and of the future. */
  revision = 0;

  constructor(random: Xorshift) {
    this.#random = random;
  }

  next(): RandomRequest {
    const choice = this.#below(100);
    if (choice < 30) return { service: "KV", method: "Put", request: this.#put() };
    if (choice < 55) return { service: "KV", method: "Range", request: this.#range() };
    if (choice < 63) return { service: "KV", method: "DeleteRange", request: this.#deletion() };
    if (choice < 82) return { service: "KV", method: "Txn", request: this.#txn(0) };
    if (choice < 84) return { service: "KV", method: "Compact", request: this.#compaction() };
    return this.#lease(choice);
  }

  watch(): MessageInitShape<typeof WatchCreateRequestSchema> {
    return create(WatchCreateRequestSchema, {
      ...this.#keys(),
      startRevision: this.#chance(0.5) ? 0n : this.#someRevision(),
      watchId: this.#chance(0.1) ? BigInt(this.#below(4)) : 0n,
      prevKv: this.#chance(0.5),
      filters: this.#chance(0.2) ? [this.#pick([Filter.NOPUT, Filter.NODELETE])] : [],
      fragment: this.#chance(0.2),
    });
  }

  #lease(choice: number): RandomRequest {
    const ID = this.#leaseId();
    if (choice < 90) {
      const TTL = this.#pick([600n, 600n, 600n, 1_000n, 9_000_000_001n]);
      return {
        service: "Lease",
        method: "LeaseGrant",
        request: create(LeaseGrantRequestSchema, { ID, TTL }),
      };
    }
    if (choice < 94)
      return { service: "Lease", method: "LeaseRevoke", request: create(LeaseRevokeRequestSchema, { ID }) };
    if (choice < 98) {
      const request = create(LeaseTimeToLiveRequestSchema, { ID, keys: this.#chance(0.7) });
      return { service: "Lease", method: "LeaseTimeToLive", request };
    }
    return { service: "Lease", method: "LeaseLeases", request: create(LeaseLeasesRequestSchema) };
  }

  #put() {
    return create(PutRequestSchema, {
      key: this.#key(),
      value: this.#chance(0.9) ? bytes(`v${this.#below(5)}`) : bytes(""),
      lease: this.#chance(0.3) ? this.#leaseId() : 0n,
      prevKv: this.#chance(0.3),
      ignoreValue: this.#chance(0.05),
      ignoreLease: this.#chance(0.05),
    });
  }

  #range() {
    const sortOrder = this.#chance(0.4) ? this.#pick([Order.NONE, Order.ASCEND, Order.DESCEND]) : Order.NONE;
    const sortTarget = this.#chance(0.4) ? this.#pick(sortTargets) : SortTarget.KEY;
    return create(RangeRequestSchema, {
      ...this.#keys(),
      limit: this.#chance(0.3) ? BigInt(this.#below(4)) : 0n,
      revision: this.#chance(0.3) ? this.#someRevision() : 0n,
      sortOrder,
      sortTarget,
      serializable: this.#chance(0.2),
      keysOnly: this.#chance(0.2),
      countOnly: this.#chance(0.1),
      minModRevision: this.#bound(),
      maxModRevision: this.#bound(),
      minCreateRevision: this.#bound(),
      maxCreateRevision: this.#bound(),
    });
  }

  #deletion() {
    return create(DeleteRangeRequestSchema, { ...this.#keys(), prevKv: this.#chance(0.5) });
  }

  #compaction() {
    return create(CompactionRequestSchema, { revision: this.#someRevision(), physical: this.#chance(0.5) });
  }

  #txn(depth: number): TxnRequest {
    return create(TxnRequestSchema, {
      compare: this.#several(2, () => this.#comparison()),
      success: this.#several(3, () => this.#operation(depth)),
      failure: this.#several(3, () => this.#operation(depth)),
    });
  }

  #operation(depth: number): RequestOp {
    const choice = this.#below(100);
    const request: RequestOp["request"] =
      choice < 40
        ? { case: "requestPut", value: this.#put() }
        : choice < 70
          ? { case: "requestRange", value: this.#range() }
          : choice < 85 || depth > 1
            ? { case: "requestDeleteRange", value: this.#deletion() }
            : { case: "requestTxn", value: this.#txn(depth + 1) };
    return create(RequestOpSchema, { request });
  }

  #comparison() {
    const target = this.#pick([Target.VERSION, Target.CREATE, Target.MOD, Target.VALUE, Target.LEASE]);
    const number = BigInt(this.#below(4));
    const targetUnion = {
      [Target.VERSION]: { case: "version", value: number } as const,
      [Target.CREATE]: { case: "createRevision", value: this.#someRevision() } as const,
      [Target.MOD]: { case: "modRevision", value: this.#someRevision() } as const,
      [Target.VALUE]: { case: "value", value: bytes(`v${number}`) } as const,
      [Target.LEASE]: { case: "lease", value: number } as const,
    }[target];
    const result = this.#pick([Result.EQUAL, Result.GREATER, Result.LESS, Result.NOT_EQUAL]);
    const key = this.#key();
    return create(CompareSchema, {
      key,
      rangeEnd: this.#chance(0.2) ? this.#end(key) : bytes(""),
      target,
      result,
      targetUnion,
    });
  }

  #keys(): { key: Uint8Array; rangeEnd: Uint8Array } {
    const key = this.#key();
    return { key, rangeEnd: this.#chance(0.5) ? bytes("") : this.#end(key) };
  }

  #end(key: Uint8Array): Uint8Array {
    if (this.#chance(0.2)) return bytes("\0");
    if (this.#chance(0.2)) return this.#key();
    return this.#chance(0.5) ? bytes("l") : Uint8Array.of(...key, 255);
  }

  #key(): Uint8Array {
    return this.#chance(0.01) ? bytes("") : bytes(`k${this.#below(6)}`);
  }

  #leaseId(): bigint {
    return BigInt(1 + this.#below(4));
  }

  #bound(): bigint {
    return this.#chance(0.1) ? this.#someRevision() : 0n;
  }

  #someRevision(): bigint {
    return BigInt(Math.max(-3, this.revision - this.#below(this.#chance(0.2) ? 40 : 8) + 1));
  }

  #several<T>(max: number, make: () => T): T[] {
    return Array.from({ length: this.#below(max + 1) }, make);
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#below(values.length)]!;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }

  #chance(share: number): boolean {
    return this.#random.next() < share;
  }
}
