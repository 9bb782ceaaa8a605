import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { bytes, compact, put, remove, text, txn } from "@leasehold/sim/inner/core/world/requests.js";
import type { CorePlan } from "@leasehold/sim/inner/core/world/plan.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import {
  DeleteRangeRequestSchema,
  WatchCreateRequest_FilterType as Filter,
  WatchRequestSchema,
  type WatchResponse,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ReplicaLimits } from "./options.js";
import { withFaults } from "../../../../test/planted/switches.js";

const PUT = "etcdserverpb.PutResponse";
const all = { key: bytes("\0"), rangeEnd: bytes("\0") };

function begin(limits: Partial<ReplicaLimits> = {}, plan: Partial<CorePlan> = {}) {
  const cluster = new VirtualCluster({ servers: 1, limits, ...plan });
  const server = cluster.leader();
  return { cluster, server };
}

function putAll(cluster: VirtualCluster, server: SimServer, ...keys: string[]): void {
  for (const key of keys) cluster.ask(server, PUT, put(key, "1"));
  cluster.run(50);
}

function putTogether(cluster: VirtualCluster, server: SimServer, keys: readonly string[], value = "1"): void {
  const success = keys.map((key) => ({
    request: { case: "requestPut" as const, value: { key: bytes(key), value: bytes(value) } },
  }));
  cluster.ask(server, "etcdserverpb.TxnResponse", txn({ success }));
  cluster.run(50);
}

const eventsOf = (responses: readonly WatchResponse[]) =>
  responses.flatMap(({ events }) => events.map(({ kv }) => `${text(kv!.key)}${kv!.modRevision}`));

describe("a watch", () => {
  test("has an id, from 0 on each stream, or the one it asks for", () => {
    const { cluster, server } = begin();
    const { responses, send } = cluster.watch(server, all);
    send({ case: "createRequest", value: { ...all, watchId: 1n } });
    send({ case: "createRequest", value: all });
    send({ case: "createRequest", value: { ...all, watchId: 1n } });
    send({ case: "createRequest", value: { key: bytes("b"), rangeEnd: bytes("a") } });
    cluster.run(50);
    expect(responses.map(({ watchId, created, canceled }) => [watchId, created, canceled])).toEqual([
      [0n, true, false],
      [1n, true, false],
      [2n, true, false],
      [-1n, true, true],
      [-1n, true, true],
    ]);
  });

  test("is created before anything else, and then gets the history from its revision on", () => {
    const { cluster, server } = begin();
    putAll(cluster, server, "a", "b", "c");
    const { responses } = cluster.watch(server, { ...all, startRevision: 3n });
    putAll(cluster, server, "d");
    expect(responses[0]).toMatchObject({ created: true, events: [] });
    expect(responses[0]!.header!.revision).toBe(4n);
    expect(eventsOf(responses)).toEqual(["b3", "c4", "d5"]);
  });

  test("that begins in the future gets nothing from before that revision", () => {
    const { cluster, server } = begin();
    const { responses } = cluster.watch(server, { ...all, startRevision: 4n });
    putAll(cluster, server, "a", "b", "c", "d");
    expect(eventsOf(responses)).toEqual(["c4", "d5"]);
  });

  test("from a compacted revision is created, then cancelled with the first revision left, deletions included", () => {
    const { cluster, server } = begin();
    putAll(cluster, server, "a", "b");
    cluster.outcome(server, remove("a"));
    putAll(cluster, server, "c");
    cluster.outcome(server, compact(4n));
    const { responses } = cluster.watch(server, { ...all, startRevision: 2n });
    cluster.run(50);
    expect(responses).toMatchObject([{ created: true }, { canceled: true, compactRevision: 4n }]);
    const resumed = cluster.watch(server, { ...all, startRevision: responses[1]!.compactRevision });
    cluster.run(50);
    expect(eventsOf(resumed.responses)).toEqual(["a4", "c5"]);
  });

  test("gets changes of its key or prefix, by its filters, with previous values on request", () => {
    const { cluster, server } = begin();
    const one = cluster.watch(server, { key: bytes("a") });
    const puts = cluster.watch(server, { ...all, filters: [Filter.NODELETE] });
    const deletes = cluster.watch(server, { ...all, filters: [Filter.NOPUT], prevKv: true });
    putAll(cluster, server, "a", "ab");
    cluster.outcome(server, remove("ab"));
    cluster.run(50);
    expect(eventsOf(one.responses)).toEqual(["a2"]);
    expect(eventsOf(puts.responses)).toEqual(["a2", "ab3"]);
    const [deletion] = deletes.responses.flatMap(({ events }) => events);
    // A deletion carries the key and the revision, and the previous value on request.
    expect(deletion).toMatchObject({ type: 1, kv: { modRevision: 4n, version: 0n, createRevision: 0n } });
    expect(deletion!.prevKv).toMatchObject({ modRevision: 3n, version: 1n });
  });

  test("that is cancelled gets nothing more", () => {
    const { cluster, server } = begin();
    const { responses, send } = cluster.watch(server, all);
    send({ case: "cancelRequest", value: { watchId: 0n } });
    send({ case: "cancelRequest", value: { watchId: 9n } });
    putAll(cluster, server, "a");
    expect(responses).toMatchObject([{ created: true }, { canceled: true, watchId: 0n }]);
    expect(server.replica!.status().watches).toBe(0);
  });

  test("reports progress with id -1, once all watches of the stream have caught up", () => {
    const { cluster, server } = begin({ watchBatch: 1 });
    putAll(cluster, server, "a", "b", "c");
    const { responses, send } = cluster.watch(server, { ...all, startRevision: 2n });
    send({ case: "progressRequest", value: {} });
    cluster.run(500);
    expect(responses.at(-1)).toMatchObject({ watchId: -1n, header: { revision: 4n } });
    expect(eventsOf(responses.slice(0, -1))).toEqual(["a2", "b3", "c4"]);
  });
});

describe("a revision", () => {
  const keys = ["a", "b", "c"];
  test("is never split", () => {
    const { cluster, server } = begin({ fragmentBytesMax: 200, watchBatch: 1 });
    putTogether(cluster, server, keys, "x".repeat(100));
    const past = cluster.watch(server, { ...all, startRevision: 2n });
    const now = cluster.watch(server, all);
    putTogether(cluster, server, keys, "x".repeat(100));
    expect(past.responses.map(({ events }) => events.length)).toEqual([0, 3, 3]);
    expect(now.responses.map(({ events }) => events.length)).toEqual([0, 3]);
  });

  test("is sent in fragments on request", () => {
    const { cluster, server } = begin({ fragmentBytesMax: 200 });
    const { responses } = cluster.watch(server, { ...all, fragment: true });
    putTogether(cluster, server, keys, "x".repeat(100));
    expect(responses.map(({ events, fragment }) => [events.length, fragment])).toEqual([
      [0, false],
      [1, true],
      [1, true],
      [1, false],
    ]);
  });
});

test("a slow client's watch takes no memory, and misses nothing", () => {
  const run = () => {
    const { cluster, server } = begin({ watchResponsesMax: 2, watchBatch: 2 });
    // No response is acknowledged for a long time.
    Object.assign(cluster.world.plan, { latencyMs: 400 });
    const { responses } = cluster.watch(server, all);
    for (let count = 0; count < 30; count += 1) cluster.send(server, put(`k${count}`, "1"));
    cluster.run(30_000);
    return eventsOf(responses).length;
  };
  expect(run()).toBe(30);
  expect(withFaults({ slowWatcherSkips: true }, run)).toBeLessThan(30);
});

test("a follower that installs a snapshot sends its watches the changes in between", () => {
  const cluster = new VirtualCluster({ limits: { snapshotEntries: 10, keepEntries: 2 } });
  const leader = cluster.leader();
  const [behind] = cluster.followers();
  const { responses } = cluster.watch(behind!, all);
  putAll(cluster, leader, "a");
  cluster.isolate(behind!);
  putAll(cluster, leader, ...Array.from({ length: 30 }, (_, index) => `k${index}`));
  cluster.heal();
  cluster.run(3_000);
  expect(behind!.replica!.status().snapshotIndex).toBeGreaterThan(10);
  expect(eventsOf(responses)).toHaveLength(31);
  expect(new Set(eventsOf(responses)).size).toBe(31);
});

describe("a revision larger than one response", () => {
  const many = Array.from({ length: 120 }, (_, index) => `k${String(index).padStart(3, "0")}`);
  const limits = { watchBatch: 10, revisionBytesMax: 5_000, fragmentBytesMax: 500 };
  const deleted = (changed: Partial<ReplicaLimits> = {}, plan: Partial<CorePlan> = {}) => {
    const { cluster, server } = begin({ ...limits, ...changed }, plan);
    putTogether(cluster, server, many);
    const request = create(DeleteRangeRequestSchema, { key: bytes("k"), rangeEnd: bytes("l") });
    cluster.outcome(server, { kind: "deleteRange", request });
    putAll(cluster, server, "last");
    return { cluster, server };
  };
  const expected = [...many.map((key) => `${key}3`), "last4"];

  test("ends a watch that did not ask for fragments, with a reason, and no other", () => {
    const run = () => {
      const { cluster, server } = deleted();
      const whole = cluster.watch(server, { ...all, startRevision: 3n });
      const other = cluster.watch(server, { key: bytes("k001"), rangeEnd: bytes("k004"), startRevision: 3n });
      cluster.run(200);
      expect(eventsOf(other.responses)).toEqual(["k0013", "k0023", "k0033"]);
      return whole.responses;
    };
    expect(run()).toMatchObject([
      { created: true },
      { canceled: true, cancelReason: expect.stringContaining("fragments") as string, events: [] },
    ]);
    expect(withFaults({ revisionsGathered: true }, run).map(({ events }) => events.length)).toContain(120);
  });

  test("is sent in fragments as it is read: nothing of it is buffered", () => {
    const { cluster, server } = deleted();
    const { responses } = cluster.watch(server, { ...all, startRevision: 3n, fragment: true });
    cluster.run(200);
    expect(eventsOf(responses)).toEqual(expected);
    for (const { events } of responses) expect(events.length).toBeLessThan(15);
    const isLastOfRevision = responses.filter(({ events }) =>
      events.some(({ kv }) => text(kv!.key) === "k119"),
    );
    expect(isLastOfRevision.map(({ fragment }) => fragment)).toEqual([false]);
    expect(responses.filter(({ fragment }) => fragment).length).toBeGreaterThan(10);
  });

  test("reaches all watches, even if those that it was buffered for end", () => {
    const changed = { revisionBytesMax: 1e6, unitsPerTurn: 64 };
    const { cluster, server } = deleted(changed, { turnMs: 0.5, turnsAtOnce: 1 });
    const past = { ...all, startRevision: 3n };
    const gone = cluster.watch(server, past);
    for (let count = 0; count < 7; count += 1) gone.send({ case: "createRequest", value: past });
    const others = Array.from({ length: 10 }, () => cluster.watch(server, past));
    cluster.run(2);
    expect(server.replica!.status().watchesBehind).toBe(18);
    gone.close();
    cluster.run(5_000);
    for (const { responses } of others) expect(eventsOf(responses)).toEqual(expected);
    expect(server.replica!.status().watchesBehind).toBe(0);
  });

  test("is buffered for a few watches at a time, and all get it once", () => {
    const { cluster, server } = deleted({ revisionBytesMax: 1e6 });
    const watches = Array.from({ length: 20 }, () => cluster.watch(server, { ...all, startRevision: 2n }));
    cluster.run(2_000);
    for (const { responses } of watches)
      expect(eventsOf(responses)).toEqual([...many.map((key) => `${key}2`), ...expected]);
    expect(server.replica!.status().watchesBehind).toBe(0);
  });
});

test("unread responses share one bound, and other clients get their events", () => {
  const { cluster, server } = begin({ watchBytesTotalMax: 20_000, fragmentBytesMax: 1_000 });
  for (let count = 0; count < 100; count += 1) putTogether(cluster, server, [`k${count}`], "x".repeat(1_000));
  const slow = new Map<number, number>();
  const heard: string[] = [];
  let isStuck = true;
  cluster.world.watched = (_server, _number, { stream, response }) => {
    if (response instanceof Error) throw response;
    if (isStuck) slow.set(stream, (slow.get(stream) ?? 0) + response.events.length);
    else {
      heard.push(...eventsOf([response]));
      cluster.world.after(1, () => server.step({ kind: "watch-sent", stream, responses: 1 }));
    }
  };
  for (let count = 0; count < 10; count += 1) cluster.watch(server, { ...all, startRevision: 2n });
  cluster.run(1_000);
  const unsent = [...slow.values()].reduce((sum, each) => sum + each, 0);
  expect(unsent).toBeLessThan(22);
  expect(Math.max(...slow.values())).toBeLessThan(12);
  isStuck = false;
  cluster.watch(server, { key: bytes("k5"), startRevision: 2n });
  for (const stream of slow.keys()) server.step({ kind: "watch-sent", stream, responses: 100 });
  cluster.run(5_000);
  expect(heard).toHaveLength(1 + 10 * 100 - unsent);
});

test("a client that reads nothing has one share of the responses in flight, however many streams it has", () => {
  const unsent = () => {
    const { cluster, server } = begin({ watchBytesTotalMax: 20_000, fragmentBytesMax: 1_000 });
    for (let count = 0; count < 30; count += 1)
      putTogether(cluster, server, [`k${count}`], "x".repeat(1_000));
    let events = 0;
    const value = { ...all, startRevision: 2n };
    const request = create(WatchRequestSchema, { requestUnion: { case: "createRequest", value } });
    for (let count = 0; count < 10; count += 1)
      server.enter((host) => {
        const stream = host.openWatches("client", (response) => {
          if (!(response instanceof Error)) events += response.events.length;
        });
        host.watch(stream, request);
      });
    cluster.run(1_000);
    return events;
  };
  expect(unsent()).toBeLessThan(12);
  expect(withFaults({ sharesOfStreams: true }, unsent)).toBeGreaterThan(12);
});

test("watches of long keys are refused by their bytes", () => {
  const refused = () => {
    const { cluster, server } = begin({ watchesBytesMax: 100_000 });
    const { responses, send } = cluster.watch(server, all);
    const key = bytes("x".repeat(10_000));
    for (let count = 0; count < 10; count += 1) send({ case: "createRequest", value: { key } });
    cluster.run(50);
    return responses.filter(({ canceled }) => canceled).length;
  };
  expect(refused()).toBe(8);
  expect(withFaults({ watchesUnbounded: true }, refused)).toBe(0);
});

test("all watches share one bound of bytes, divided among clients, and ended ones make room", () => {
  const { cluster, server } = begin({ watchesBytesMax: 400_000 });
  const long = (number: number) => ({ key: bytes(`${number}${"x".repeat(9_000)}`) });
  const hungry = cluster.watch(server, all);
  for (let number = 0; number < 50; number += 1) hungry.send({ case: "createRequest", value: long(number) });
  cluster.run(50);
  const refused = hungry.responses.filter(({ canceled }) => canceled);
  // Half of the room, as it is the only client. Each key counts twice: also as the end of its range.
  const had = hungry.responses.length - refused.length;
  expect(had).toBeGreaterThan(8);
  expect(had).toBeLessThan(13);
  for (const response of refused)
    expect(response).toMatchObject({
      watchId: -1n,
      created: true,
      cancelReason: "etcdserver: too many requests",
    });
  const other = cluster.watch(server, long(0));
  cluster.run(50);
  expect(other.responses).toMatchObject([{ created: true, canceled: false }]);
  other.close();
  hungry.send({ case: "cancelRequest", value: { watchId: 1n } });
  hungry.send({ case: "createRequest", value: long(1) });
  cluster.run(50);
  expect(hungry.responses.at(-1)).toMatchObject({ created: true, canceled: false });
  hungry.close();
  const next = cluster.watch(server, all);
  for (let number = 0; number < had - 3; number += 1)
    next.send({ case: "createRequest", value: long(number) });
  cluster.run(50);
  expect(next.responses.filter(({ canceled }) => canceled)).toEqual([]);
});

test("one command for many watches is published in turns, and each watch gets it once", () => {
  const cluster = new VirtualCluster({ servers: 1, turnMs: 0.5, turnsAtOnce: 1 });
  const server = cluster.leader();
  const watches = Array.from({ length: 200 }, () => cluster.watch(server, all));
  cluster.run(100);
  const { watched } = cluster.world;
  const told = new Map<number, number>();
  cluster.world.watched = (to, number, answer) => {
    const events = answer.response instanceof Error ? 0 : answer.response.events.length;
    told.set(cluster.world.nowMs, (told.get(cluster.world.nowMs) ?? 0) + events);
    watched.call(cluster.world, to, number, answer);
  };
  putTogether(
    cluster,
    server,
    Array.from({ length: 128 }, (_, index) => `k${index}`),
  );
  cluster.run(500);
  expect([...told.values()].reduce((sum, each) => sum + each, 0)).toBe(200 * 128);
  expect(Math.max(...told.values())).toBeLessThan(3_000);
  for (const { responses } of watches) expect(eventsOf(responses)).toHaveLength(128);
});
