import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { afterEach, describe, expect, test, vi } from "vitest";
import { VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { bytes, put, range, revoke, timeToLive, txn } from "@leasehold/sim/inner/core/world/requests.js";
import {
  LeaseGrantRequestSchema,
  type LeaseTimeToLiveResponse,
  type RequestOpSchema,
  TxnRequestSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { isOversized } from "../server/api/calls/txn-size.js";
import type { WatchAnswer } from "./types.js";
import { snapshotPieces } from "../state/snapshot.js";
import { CoreState } from "../state/state.js";
import { finish } from "../state/steps.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { Watcher } from "./watch-stream.js";

type Operation = MessageInitShape<typeof RequestOpSchema>;
type Txn = MessageInitShape<typeof TxnRequestSchema>;

afterEach(() => void vi.restoreAllMocks());

const PUT = "etcdserverpb.PutResponse";
const TXN = "etcdserverpb.TxnResponse";
const RANGE = "etcdserverpb.RangeResponse";

const puts = (count: number, prefix = "k"): Operation[] =>
  Array.from({ length: count }, (_, number) => ({
    request: { case: "requestPut", value: { key: bytes(`${prefix}${number}`) } },
  }));
const inside = (value: Txn): Operation => ({ request: { case: "requestTxn", value } });
const read = (key: string, more: object = {}): Operation => ({
  request: { case: "requestRange", value: { key: bytes(key), ...more } },
});
const compared = (count: number) =>
  Array.from({ length: count }, () => ({
    key: bytes("a"),
    targetUnion: { case: "version" as const, value: 0n },
  }));

/** Nested transactions of this depth, with `innermost` in the last. */
function deep(levels: number, innermost: Txn): Txn {
  let request = innermost;
  for (let level = 0; level < levels; level += 1) request = { success: [inside(request)] };
  return request;
}

describe("bounds of one request", () => {
  test("a transaction has at most 128 operations on all levels together", () => {
    const cluster = new VirtualCluster({ servers: 1 });
    const leader = cluster.leader();
    cluster.ask(leader, TXN, txn({ success: puts(128) }));
    cluster.ask(leader, TXN, txn({ success: [inside({ success: puts(63, "i") }), ...puts(63)] }));
    for (const request of [
      { success: puts(129) },
      { failure: puts(129) },
      { compare: compared(129) },
      { success: [inside({ success: puts(65, "i") }), ...puts(63)] },
      { success: [inside({ success: puts(64, "i") })], failure: [inside({ success: puts(64, "j") })] },
      { success: Array.from({ length: 64 }, (_, at) => inside({ success: puts(2, `${at}.`) })) },
    ])
      expect(cluster.failure(leader, txn(request))).toBe("tooManyOperations");
  });

  test("transactions are nested at most 32 deep, and the deepest can be read from the log again", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const innermost = { compare: compared(1), success: puts(1) };
    cluster.ask(leader, TXN, txn(deep(32, innermost)));
    // Depths that a decoder of 100 levels accepts from a client, but not from the log, where requests are one
    // level deeper.
    for (const levels of [33, 48, 49, 64])
      expect(cluster.failure(leader, txn(deep(levels, innermost)))).toBe("tooManyOperations");
    for (const server of cluster.world.servers) expect(server.isUp).toBe(true);
    cluster.ask(leader, PUT, put("a", "1"));
  });

  test("a request with too many operations is refused before it is decoded", () => {
    const oversized = (request: Txn) =>
      isOversized(toBinary(TxnRequestSchema, create(TxnRequestSchema, request)));
    expect(oversized({ compare: compared(128), success: puts(128), failure: puts(128) })).toBe(false);
    expect(oversized({ success: [inside({ success: puts(3_072) })] })).toBe(true);
    expect(oversized(deep(32, { success: puts(1) }))).toBe(false);
    expect(oversized(deep(33, { success: puts(1) }))).toBe(true);
    // Field 2, empty, a million times.
    const million = Buffer.alloc(2_000_000, Buffer.of(0x12, 0));
    expect(isOversized(million)).toBe(true);
    // A part whose length exceeds the message.
    expect(() => isOversized(Uint8Array.of(0x12, 0x7f, 0x22))).toThrow(RangeError);
  });
});

describe("a transaction that only reads", () => {
  test("does not go through the log, and is linearizable like a range", () => {
    const cluster = new VirtualCluster();
    const leader = cluster.leader();
    const [follower] = cluster.followers();
    const { header } = cluster.ask(leader, PUT, put("a", "1"));
    cluster.run(500);
    const { lastIndex } = leader.replica!.status();
    const request = {
      compare: [{ key: bytes("a"), targetUnion: { case: "version" as const, value: 1n } }],
      success: [read("a"), inside({ failure: [read("b")] })],
      failure: [read("c")],
    };
    const answer = cluster.ask(follower!, TXN, txn(request));
    expect(answer).toMatchObject({ succeeded: true, header: { revision: header!.revision } });
    expect(answer.responses.map(({ response }) => response.case)).toEqual(["responseRange", "responseTxn"]);
    expect(leader.replica!.status().lastIndex).toBe(lastIndex);
    cluster.isolate(follower!);
    expect(cluster.failure(follower!, txn(request))).not.toBe("none");
    const serializable = { success: [read("a", { serializable: true })] };
    expect(cluster.ask(follower!, TXN, txn(serializable)).succeeded).toBe(true);
    expect(cluster.failure(follower!, txn({ compare: request.compare }))).not.toBe("none");
  });

  test("goes through the log if one of its branches writes, even if the other one is executed", () => {
    const cluster = new VirtualCluster({ servers: 1 });
    const leader = cluster.leader();
    const { lastIndex } = leader.replica!.status();
    for (const request of [{ failure: puts(1) }, { success: [inside({ failure: puts(1) })] }])
      cluster.ask(leader, TXN, txn(request));
    expect(leader.replica!.status().lastIndex).toBe(lastIndex + 2);
  });
});

describe("an answer", () => {
  const all = { key: bytes("a"), rangeEnd: Uint8Array.of(0) };
  const whole: Operation = { request: { case: "requestRange", value: all } };

  test("is bounded for reads and for writes, and a write whose answer is too large takes effect", () => {
    const cluster = new VirtualCluster({ limits: { answerBytesMax: 10_000 } });
    const leader = cluster.leader();
    for (let number = 0; number < 20; number += 1) cluster.ask(leader, PUT, put(`k${number}`, "x"));
    const count = (success: Operation[]) => cluster.outcome(leader, txn({ success }));
    expect(count([whole])).toMatchObject({ succeeded: true });
    expect(cluster.ask(leader, RANGE, range("a", { rangeEnd: all.rangeEnd })).kvs).toHaveLength(20);
    expect(count([whole, whole])).toMatchObject({ failure: "answerTooLarge", code: 8 });
    expect(count([whole, ...puts(1, "new"), whole])).toMatchObject({ failure: "answerTooLargeDone" });
    for (const server of cluster.world.servers)
      expect(cluster.ask(server, RANGE, range("new0")).kvs).toHaveLength(1);
    cluster.run(500);
    const [first, ...others] = cluster.world.servers.map(({ replica }) => replica!.status());
    for (const { revision, bytes: counted } of others)
      expect({ revision, counted }).toEqual({ revision: first!.revision, counted: first!.bytes });
  });

  test("is not built where no client waits for it, and the state is the same either way", () => {
    const setUp = () => {
      const state = new CoreState();
      for (let number = 0; number < 5; number += 1)
        state.revisions.put(`k${number}`, bytes("x"), 0n, 2 + number, undefined);
      state.revisions.commit(6);
      return state;
    };
    const request = create(TxnRequestSchema, { success: [whole, ...puts(3), whole] });
    const command = create(CommandSchema, { body: { case: "txn", value: request } });
    const [awaited, other] = [setUp(), setUp()];
    expect(finish(awaited.applying(command, 1, 1, 1e6)).answer).toMatchObject({ succeeded: true });
    expect(finish(other.applying(command, 1, 1, -1)).answer).toBeUndefined();
    expect([...snapshotPieces(other)]).toEqual([...snapshotPieces(awaited)]);
  });

  test("is not needed to end leases", () => {
    const state = new CoreState();
    for (const ID of [1n, 2n, 3n])
      state.apply(create(CommandSchema, { body: { case: "leaseGrant", value: { ID, TTL: 9n } } }), 1);
    const value = { ids: [1n, 2n, 3n], term: 1n, apart: true };
    const expire = create(CommandSchema, { body: { case: "leaseExpire", value } });
    expect(finish(state.applying(expire, 1, 1, -1)).ended).toEqual([1n, 2n, 3n]);
  });
});

test("during a lease's revocation either all of its keys are shown or none", () => {
  const cluster = new VirtualCluster({ turnMs: 0.5, turnsAtOnce: 1, limits: { unitsPerTurn: 64 } });
  const leader = cluster.leader();
  const [id, keys] = [5n, 600];
  const request = create(LeaseGrantRequestSchema, { ID: id, TTL: 600n });
  cluster.outcome(leader, { kind: "leaseGrant", request });
  for (let start = 0; start < keys; start += 100) {
    const attach = Array.from({ length: 100 }, (_, at): Operation => ({
      request: { case: "requestPut", value: { key: bytes(`k${start + at}`), lease: id } },
    }));
    cluster.ask(leader, TXN, txn({ success: attach }));
  }
  const asked = [cluster.send(leader, timeToLive(id, true))];
  cluster.run(10);
  cluster.send(leader, revoke(id));
  for (let count = 0; count < 20; count += 1) {
    asked.push(cluster.send(leader, timeToLive(id, true)));
    cluster.run(0.25);
  }
  cluster.run(1_000);
  const told = asked.map(({ outcome }) => (outcome as LeaseTimeToLiveResponse).keys.length);
  expect(new Set(told)).toEqual(new Set([keys, 0]));
});

test("long reads in progress are answered however late; one that waits for a leader times out", () => {
  const turns = { turnMs: 20, turnsAtOnce: 1, limits: { unitsPerTurn: 64 }, timeoutMs: 1_000 };
  const cluster = new VirtualCluster({ servers: 1, ...turns });
  const leader = cluster.leader();
  for (let start = 0; start < 10; start += 1)
    cluster.ask(leader, TXN, txn({ success: puts(100, `${start}/`) }));
  const all = range("0", { rangeEnd: Uint8Array.of(0) });
  const sent = Array.from({ length: 20 }, () => cluster.send(leader, all));
  const startMs = cluster.world.nowMs;
  while (sent.some(({ outcome }) => outcome === undefined) && cluster.world.nowMs < startMs + 60_000)
    cluster.run(100);
  expect(cluster.world.nowMs - startMs).toBeGreaterThan(2 * turns.timeoutMs);
  for (const { outcome } of sent) expect(outcome).toMatchObject({ count: 1_000n });

  const others = new VirtualCluster({ timeoutMs: 1_000 });
  const [alone] = (others.leader(), others.followers());
  others.isolate(alone!);
  expect(others.failure(alone!, range("a"))).toMatch(/timeout|noLeader|leaderChanged/);
});

describe("internal errors", () => {
  test("a watch stream that cannot be served ends, and no other stream does", () => {
    const cluster = new VirtualCluster({ servers: 1 });
    const leader = cluster.leader();
    const whole = { key: bytes("a"), rangeEnd: Uint8Array.of(0) };
    for (let count = 0; count < 2; count += 1) cluster.watch(leader, whole);
    cluster.run(10);
    const { add } = Watcher.prototype;
    const broken = vi.spyOn(Watcher.prototype, "add").mockImplementationOnce(() => {
      throw new RangeError("too much");
    });
    broken.mockImplementation(add);
    const answers: WatchAnswer[] = [];
    cluster.world.watched = (_server, _number, answer) => void answers.push(answer);
    const troubles: string[] = [];
    cluster.world.trouble = (_server, text) => void troubles.push(text);
    cluster.ask(leader, PUT, put("a", "1"));
    const [failed, told] = answers;
    expect(failed!.response).toMatchObject({ failure: "internal", cause: { message: "too much" } });
    expect(told!.response).toMatchObject({ events: [{}] });
    expect(answers).toHaveLength(2);
    expect(troubles).toEqual([expect.stringContaining("too much")]);
    expect(leader.replica!.status().watches).toBe(1);
  });

  test("a failed read is answered, and the server continues", () => {
    const cluster = new VirtualCluster({ servers: 1 });
    const leader = cluster.leader();
    const request = range("a");
    Object.defineProperty((request as { request: object }).request, "limit", {
      get() {
        throw new RangeError("too much");
      },
    });
    const troubles: string[] = [];
    cluster.world.trouble = (_server, text) => void troubles.push(text);
    expect(cluster.failure(leader, request)).toBe("internal");
    expect(troubles).toEqual([expect.stringContaining("too much")]);
    cluster.ask(leader, RANGE, range("a"));
  });
});
