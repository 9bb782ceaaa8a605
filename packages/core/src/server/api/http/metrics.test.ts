import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { VirtualCluster } from "../../../../../../test/core/virtual-cluster.js";
import { put, range } from "@leasehold/sim/inner/core/world/requests.js";
import { Counters, MethodCounts } from "../../metrics/counters.js";
import { Traffic } from "../../wire/traffic.js";
import { metricsText } from "./metrics.js";

function textOf(cluster: VirtualCluster, counters = new Counters(), clients = new Traffic()): string {
  const leader = cluster.leader();
  return metricsText({
    status: leader.replica!.status(),
    facts: { cluster: 1n, id: leader.id, diskBytes: () => 12_345 },
    counters,
    connections: { max: 10, open: 3, refused: 2 },
    clients: clients.bytes,
    quotaBytes: 1_000_000,
  });
}

const valueOf = (text: string, series: string) =>
  Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1),
  );

class FakeSocket extends EventEmitter {
  bytesRead = 0;
  bytesWritten = 0;
}

const seriesOf = (name: string) =>
  new RegExp(`^${name}(_bucket|_sum|_count)?({\\w+="[^"]*"(,\\w+="[^"]*")*})? [0-9.e+-]+$`);

test("each metric has one HELP and one TYPE before all its series, in Prometheus' format", () => {
  const counters = new Counters();
  counters.peer(0xabn).roundTrip.observe(0.003);
  const method = new MethodCounts('grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"');
  counters.methods.push(method);
  method.started = 1;
  method.handled(0, 20);
  const seen = new Set<string>();
  const wrong: string[] = [];
  let form = /^$/;
  for (const line of textOf(new VirtualCluster(), counters).trimEnd().split("\n")) {
    const [, name] = /^# HELP (\w+) \S.*$/.exec(line) ?? [];
    if (name === undefined) {
      if (!form.test(line)) wrong.push(line);
      form = seriesOf([...seen].at(-1)!);
      continue;
    }
    if (seen.has(name)) wrong.push(line);
    seen.add(name);
    form = new RegExp(`^# TYPE ${name} (counter|gauge|histogram)$`);
  }
  expect(wrong).toEqual([]);
  expect(seen.size).toBeGreaterThan(40);
});

test("histograms count durations up to each of their bounds", () => {
  const counters = new Counters();
  const { roundTrip } = counters.peer(0xabn);
  for (const seconds of [0.0001, 0.00011, 0.2, 1.6384, 2]) roundTrip.observe(seconds);
  const text = textOf(new VirtualCluster(), counters);
  const series = (le: string) => `etcd_network_peer_round_trip_time_seconds_bucket{To="ab",le="${le}"}`;
  const counts = ["0.0001", "0.0002", "0.1024", "0.2048", "1.6384", "+Inf"].map((le) =>
    valueOf(text, series(le)),
  );
  expect(counts).toEqual([1, 2, 2, 3, 4, 5]);
});

test("bytes of open and of closed connections are each counted once", () => {
  const [counters, clients] = [new Counters(), new Traffic()];
  const [first, second] = [new FakeSocket(), new FakeSocket()];
  for (const socket of [first, second]) clients.follow(socket);
  counters.peer(1n).traffic.follow(second);
  first.bytesRead = 10;
  second.bytesRead = 5;
  second.bytesWritten = 7;
  const bytes = () => {
    const text = textOf(new VirtualCluster(), counters, clients);
    return [
      "etcd_network_client_grpc_received_bytes_total",
      'etcd_network_peer_sent_bytes_total{To="1"}',
    ].map((name) => valueOf(text, name));
  };
  expect(bytes()).toEqual([15, 7]);
  for (const socket of [first, second]) socket.emit("close");
  first.emit("close");
  expect(bytes()).toEqual([15, 7]);
  counters.keepPeers(new Set());
  expect(bytes()).toEqual([15, Number.NaN]);
});

test("requests without a leader's answer are counted, writes and reads separately; answered ones are not", () => {
  const cluster = new VirtualCluster({ timeoutMs: 2_000 });
  const leader = cluster.leader();
  cluster.outcome(leader, put("a", "1"));
  cluster.outcome(leader, range("a"));
  const counted = () => {
    const { asksFailed, proposalsFailed } = leader.replica!.status();
    return { asksFailed, proposalsFailed };
  };
  expect(counted()).toEqual({ asksFailed: 0, proposalsFailed: 0 });
  cluster.isolate(leader);
  const sent = [put("b", "1"), put("c", "1"), range("a")].map((request) => cluster.send(leader, request));
  cluster.run(10_000);
  expect(sent.every(({ outcome }) => outcome !== undefined)).toBe(true);
  expect(counted()).toEqual({ asksFailed: 1, proposalsFailed: 2 });
});

test("an entry is slow when it takes more than 100 ms to apply", () => {
  const slowOf = (turnMs: number) => {
    const cluster = new VirtualCluster({ servers: 1, turnMs, turnsAtOnce: 1, limits: { unitsPerTurn: 64 } });
    const leader = cluster.leader();
    for (let key = 0; key < 300; key += 1) cluster.outcome(leader, put(`k${key}`, "1"));
    const before = leader.replica!.status().slowApplies;
    const request = { kind: "deleteRange", request: { key: Buffer.from("k"), rangeEnd: Buffer.from("l") } };
    cluster.outcome(leader, request as Parameters<typeof cluster.outcome>[1]);
    return leader.replica!.status().slowApplies - before;
  };
  expect(slowOf(0.5)).toBe(0);
  expect(slowOf(100)).toBe(1);
});
