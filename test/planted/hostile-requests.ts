import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  Compare_CompareResult,
  CompactionRequestSchema,
  DeleteRangeRequestSchema,
  LeaseGrantRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
  type WatchCreateRequestSchema,
  WatchRequestSchema,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import type { SimRandom } from "../../packages/sim/src/kit/random.js";

/** Nearly as long as the connection allows in one request. */
const longKey = `hostile/${"x".repeat(60_000)}`;

/** A request as bytes, whether or not a client could have written it. */
export interface HostileRequest {
  readonly method: "Range" | "Put" | "DeleteRange" | "Txn" | "Compact" | "LeaseGrant" | "Watch";
  readonly bytes: Uint8Array;
}

const text = (value: string) => new TextEncoder().encode(value);
const all = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) };

/** Field numbers of transactions, operations, puts and ranges. */
const field = {
  compare: 1,
  success: 2,
  failure: 3,
  range: 1,
  put: 2,
  remove: 3,
  txn: 4,
  key: 1,
  compareKey: 3,
};

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 128);
  }
}

function message(number: number, content: Uint8Array): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

/** Beyond the core's own bound at times, and beyond the connection's. */
const bytesMost = 2_200_000;

export class HostileRequests {
  readonly #random: SimRandom;
  #count = 0;

  constructor(random: SimRandom) {
    this.#random = random;
  }

  next(): HostileRequest {
    const draw = this.#random.pick([
      () => this.#deep(),
      () => this.#deep(),
      () => this.#wide(),
      () => this.#tree(),
      () => this.#huge(),
      () => this.#broken(),
      () => this.many(),
      () => this.#reads(),
      () => this.#odd(),
      () => this.#watch(),
    ]);
    return draw();
  }

  #key(): Buffer {
    return message(field.key, text(`hostile/${this.#random.pick(["a", "b"])}/${this.#random.below(1e6)}`));
  }

  #operation(): Buffer {
    const kind = this.#random.pick([field.range, field.put, field.remove]);
    return message(this.#random.pick([field.success, field.failure]), message(kind, this.#key()));
  }

  /** Nested transactions: mostly as many levels as one of the bounds allows, or one more. */
  #deep(): HostileRequest {
    const levels = this.#random.pick([33, 49, 49, 49, 5_000]);
    const compared = message(field.compare, message(field.compareKey, text("hostile/a")));
    let bytes = this.#random.pick([
      compared,
      Buffer.concat([compared, this.#operation()]),
      this.#operation(),
    ]);
    for (let level = 0; level < levels; level += 1)
      bytes = message(
        this.#random.pick([field.success, field.success, field.failure]),
        message(field.txn, bytes),
      );
    // With a read beside them, the transactions have to go through the log.
    return { method: "Txn", bytes: Buffer.concat([bytes, this.#operation()]) };
  }

  #wide(): HostileRequest {
    const count = Math.floor(this.#random.magnitude(100, 10_000));
    const parts = Array.from({ length: count }, () => this.#operation());
    return { method: "Txn", bytes: Buffer.concat(parts).subarray(0, bytesMost) };
  }

  /** Wide on many levels and in both branches, within etcd's bound. */
  #tree(): HostileRequest {
    const width = this.#random.pick([20, 60, 100]);
    let bytes: Buffer = this.#operation();
    for (let level = 0; level < 45 && bytes.length < 500_000; level += 1) {
      const inside = [field.success, field.failure].map((way) => message(way, message(field.txn, bytes)));
      bytes = Buffer.concat([...inside, ...Array.from({ length: width }, () => this.#operation())]);
    }
    return { method: "Txn", bytes };
  }

  #huge(): HostileRequest {
    const value = new Uint8Array(Math.floor(this.#random.magnitude(1e4, bytesMost)));
    const isKey = this.#random.chance(0.3);
    const put = isKey ? { key: value } : { key: text("hostile/huge"), value };
    if (this.#random.chance(0.3))
      return { method: "Range", bytes: toBinary(RangeRequestSchema, create(RangeRequestSchema, put)) };
    return { method: "Put", bytes: toBinary(PutRequestSchema, create(PutRequestSchema, put)) };
  }

  /** A valid message that is truncated, altered in places, or followed by nested groups of unknown fields. */
  #broken(): HostileRequest {
    const { method, bytes } = this.#random.pick([
      () => this.many(),
      () => this.#wide(),
      () => this.#watch(),
    ])();
    const broken = Buffer.from(bytes);
    const groups = Buffer.alloc(Math.floor(this.#random.magnitude(10, 1e6)), 0x7b);
    if (this.#random.chance(0.2)) return { method, bytes: Buffer.concat([broken, groups]) };
    for (let changes = this.#random.below(5); changes > 0 && broken.length > 0; changes -= 1)
      broken[this.#random.below(broken.length)] = this.#random.below(256);
    return {
      method,
      bytes: broken.subarray(0, this.#random.chance(0.5) ? this.#random.below(broken.length + 1) : undefined),
    };
  }

  /** Puts of many keys, and deletions that remove them all in one revision. */
  many(): HostileRequest {
    if (this.#random.chance(0.3)) {
      const prefix = { key: text("hostile/"), rangeEnd: text("hostile0"), prevKv: this.#random.chance(0.5) };
      return {
        method: "DeleteRange",
        bytes: toBinary(DeleteRangeRequestSchema, create(DeleteRangeRequestSchema, prefix)),
      };
    }
    return this.fill();
  }

  fill(): HostileRequest {
    this.#count += 1;
    const success = Array.from({ length: 128 }, (_, number) => ({
      request: { case: "requestPut" as const, value: { key: text(`hostile/m/${this.#count}/${number}`) } },
    }));
    return { method: "Txn", bytes: toBinary(TxnRequestSchema, create(TxnRequestSchema, { success })) };
  }

  /** Reads of all keys, as often as one request allows. */
  #reads(): HostileRequest {
    const count = this.#random.pick([1, 2, 8]);
    const success = Array.from({ length: count }, () => ({
      request: { case: "requestRange" as const, value: all },
    }));
    const compare = Array.from({ length: count }, () => ({
      ...all,
      targetUnion: { case: "version" as const, value: 0n },
      result: Compare_CompareResult.GREATER,
    }));
    const put = { request: { case: "requestPut" as const, value: { key: text("hostile/r") } } };
    const request = this.#random.chance(0.5)
      ? { compare, success }
      : { compare, success: [...success.slice(1), put] };
    return { method: "Txn", bytes: toBinary(TxnRequestSchema, create(TxnRequestSchema, request)) };
  }

  /** Numbers at the ends of their ranges. */
  #odd(): HostileRequest {
    const number = () => this.#random.pick([-(2n ** 63n), -1n, 0n, 1n, 2n ** 31n, 2n ** 53n, 2n ** 63n - 1n]);
    if (this.#random.chance(0.3)) {
      const request = create(CompactionRequestSchema, { revision: number() });
      return { method: "Compact", bytes: toBinary(CompactionRequestSchema, request) };
    }
    if (this.#random.chance(0.3)) {
      const request = create(LeaseGrantRequestSchema, { ID: number(), TTL: number() });
      return { method: "LeaseGrant", bytes: toBinary(LeaseGrantRequestSchema, request) };
    }
    const request = create(RangeRequestSchema, {
      ...all,
      limit: number(),
      revision: number(),
      minModRevision: number(),
      maxCreateRevision: number(),
      sortOrder: this.#random.below(4) as never,
      sortTarget: this.#random.below(6) as never,
      keysOnly: this.#random.chance(0.5),
    });
    return { method: "Range", bytes: toBinary(RangeRequestSchema, request) };
  }

  #watch(): HostileRequest {
    const value: MessageInitShape<typeof WatchCreateRequestSchema> = {
      key: text(this.#random.pick(["hostile/", "hostile/a", "", "b", longKey])),
      rangeEnd: this.#random.pick([Uint8Array.of(0), text("hostile0"), new Uint8Array(0)]),
      startRevision: this.#random.pick([0n, 1n, 2n, -1n, 2n ** 62n]),
      prevKv: this.#random.chance(0.5),
      fragment: this.#random.chance(0.5),
      watchId: this.#random.pick([0n, 0n, -1n, 5n, 2n ** 63n - 1n]),
      filters: Array.from(
        { length: this.#random.pick([0, 2, 100_000]) },
        () => this.#random.below(3) as never,
      ),
    };
    const request = create(WatchRequestSchema, { requestUnion: { case: "createRequest", value } });
    return { method: "Watch", bytes: toBinary(WatchRequestSchema, request) };
  }
}
