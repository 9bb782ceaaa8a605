import { create, toJson } from "@bufbuild/protobuf";
import { EventSchema, KeyValueSchema } from "../../packages/leasehold/src/etcd/gen/etcd/kv_pb.js";
import {
  CompactionRequestSchema,
  type LeaseLeasesResponse,
  LeaseLeasesRequestSchema,
  type LeaseTimeToLiveResponse,
  LeaseTimeToLiveRequestSchema,
  LeaseGrantRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  RequestOpSchema,
  type RangeResponse,
  TxnRequestSchema,
  DeleteRangeRequestSchema,
  type WatchRequest,
  WatchRequestSchema,
  type WatchResponse,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { bytes, type Client, text } from "../core/support/client.js";

const everything = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) };

export const compactedAt = 150;

/**
 * Creates the same history at any server: keys that come and go, leases, several changes in one revision, a
 * compaction.
 */
export async function makeHistory(client: Client): Promise<void> {
  const put = (key: string, value: string, lease = 0n) =>
    client.call("KV", "Put", create(PutRequestSchema, { key: bytes(key), value: bytes(value), lease }));
  const remove = (key: string, rangeEnd = "") =>
    client.call(
      "KV",
      "DeleteRange",
      create(DeleteRangeRequestSchema, { key: bytes(key), rangeEnd: bytes(rangeEnd) }),
    );
  for (const [ID, TTL] of [
    [77n, 1000n],
    [88n, 2000n],
    [2n ** 62n, 3000n],
  ] as const)
    await client.call("Lease", "LeaseGrant", create(LeaseGrantRequestSchema, { ID, TTL }));
  for (let i = 0; i < 140; i += 1) await put(`k${i % 30}`, `value ${i}`, i % 7 === 0 ? 77n : 0n);
  await remove("k1", "k2");
  await put("k5", "x".repeat(200_000), 88n);
  await put("empty", "");
  const success = ["k1", "t1", "t2"].map((key) =>
    create(RequestOpSchema, {
      request: { case: "requestPut", value: { key: bytes(key), value: bytes("by one"), lease: 88n } },
    }),
  );
  await client.call("KV", "Txn", create(TxnRequestSchema, { success }));
  for (let i = 0; i < 40; i += 1) await (i % 5 === 4 ? remove(`k${i}`) : put(`k${i % 30}`, `later ${i}`));
  await client.call(
    "KV",
    "Compact",
    create(CompactionRequestSchema, { revision: BigInt(compactedAt), physical: true }),
  );
  await put("k2", "after the compaction", 77n);
  await remove("k3");
}

/** Everything that a client can read: keys at each revision, the changes since, leases and their keys. */
export async function wholeContent(client: Client): Promise<unknown> {
  const at = async (revision: bigint) => {
    const request = create(RangeRequestSchema, { ...everything, revision });
    const { header, kvs } = await client.call<RangeResponse>("KV", "Range", request);
    return { newest: header!.revision, keys: kvs.map((each) => toJson(KeyValueSchema, each)) };
  };
  const { keys, newest } = await at(0n);
  const revisions: unknown[] = [];
  for (let revision = compactedAt; revision <= newest; revision += 1)
    revisions.push((await at(BigInt(revision))).keys);
  const before = await at(BigInt(compactedAt - 1)).catch((error: unknown) => (error as Error).message);
  const { leases } = await client.call<LeaseLeasesResponse>(
    "Lease",
    "LeaseLeases",
    create(LeaseLeasesRequestSchema),
  );
  const found: unknown[] = [];
  for (const { ID } of leases.sort((one, other) => (one.ID < other.ID ? -1 : 1))) {
    const request = create(LeaseTimeToLiveRequestSchema, { ID, keys: true });
    const lease = await client.call<LeaseTimeToLiveResponse>("Lease", "LeaseTimeToLive", request);
    found.push([ID, lease.grantedTTL, lease.keys.map(text).sort()]);
  }
  const events = await eventsSince(client, BigInt(compactedAt + 1), newest);
  return { newest, keys, revisions, before, leases: found, events };
}

function eventsSince(client: Client, startRevision: bigint, newest: bigint): Promise<unknown[]> {
  const stream = client.stream<WatchRequest, WatchResponse>("Watch", "Watch");
  return new Promise<unknown[]>((resolve, reject) => {
    const events: unknown[] = [];
    stream.on("error", reject);
    stream.on("data", (response: WatchResponse) => {
      for (const event of response.events) events.push(toJson(EventSchema, event));
      if (response.events.some(({ kv }) => kv!.modRevision >= newest)) resolve(events);
    });
    const watch = { ...everything, startRevision, prevKv: true };
    stream.write(create(WatchRequestSchema, { requestUnion: { case: "createRequest", value: watch } }));
  }).finally(() => {
    stream.on("error", () => undefined);
    stream.cancel();
  });
}
