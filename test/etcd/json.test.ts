import { connect } from "node:net";
import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CoreCluster } from "../core/support/core-cluster.js";
import { normalised } from "./normalised.js";

/** JSON over HTTP/1.1, of ours and of a real etcd: status, type and bytes of each answer. */

interface Said {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: readonly string[];
}

let clusters: CoreCluster[];
/** Enables etcd's histograms of calls. */
const flags = ["--metrics", "extensive"];

beforeAll(async () => {
  clusters = await Promise.all(
    (["leasehold", "etcd"] as const).map((program) => CoreCluster.start(1, { program, flags })),
  );
});
afterAll(() => Promise.all(clusters.map((cluster) => cluster[Symbol.asyncDispose]())));

interface Call {
  readonly path: string;
  readonly body?: string;
  readonly method?: string;
  /** For an answer that does not end: the number of lines to read. */
  readonly lines?: number;
  /** Only the status is compared; this is the reason. */
  readonly onlyStatus?: string;
}

function ask(cluster: CoreCluster, { path, body, lines, method = "POST", onlyStatus }: Call): Promise<Said> {
  const [host, port] = cluster.endpoints.split(":");
  return new Promise((resolve, reject) => {
    const asking = request({ host, port, path, method, agent: false, timeout: 10_000 }, (answer) => {
      let text = "";
      const done = () => {
        const { headers, statusCode: status } = answer;
        const said = { status, type: headers["content-type"], text: normalised(text, cluster) };
        resolve(onlyStatus === undefined ? said : { status, type: undefined, text: [] });
        asking.destroy();
      };
      answer.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (lines !== undefined && text.split("\n").length > lines) done();
      });
      answer.on("end", done);
    });
    asking.on("error", reject).on("timeout", () => asking.destroy(new Error(`${path}: no answer`)));
    // Leave the body open: a watching client may send more.
    if (lines !== undefined && path === "/v3/watch") asking.write(body);
    else asking.end(body);
  });
}

const b64 = (text: string) => Buffer.from(text).toString("base64");
const post = (path: string, body: object): Call => ({ path, body: JSON.stringify(body) });
const ourWords = "the words of Go's parser are not ours";

function corruptAlarm(action: string): Call {
  const call = post("/v3/maintenance/alarm", { action, memberID: "7", alarm: "CORRUPT" });
  return { ...call, onlyStatus: "etcd's answer has no header" };
}

const calls: readonly Call[] = [
  post("/v3/kv/put", { key: b64("a"), value: b64("1") }),
  post("/v3/kv/put", { key: b64("a"), value: b64("2"), prev_kv: true }),
  post("/v3/kv/put", { key: b64("b"), value: b64("<&>"), prevKv: true }),
  post("/v3beta/kv/range", { key: b64("a") }),
  post("/v3/kv/range", { key: b64("a"), range_end: b64("c"), limit: "1" }),
  post("/v3/kv/range", { key: b64("a"), range_end: b64("c"), sort_order: "DESCEND", sort_target: "KEY" }),
  post("/v3/kv/range", { key: b64("a"), range_end: b64("c"), sort_order: 2, keys_only: true }),
  post("/v3/kv/range", { key: b64("a"), count_only: true, serializable: true }),
  post("/v3/kv/range", { key: b64("a"), revision: 2 }),
  post("/v3/kv/range", { key: b64("a"), revision: "99" }),
  post("/v3/kv/range", { unknown: 1 }),
  post("/v3/kv/range", {}),
  { path: "/v3/kv/range", body: "" },
  { path: "/v3/kv/range", body: "nonsense", onlyStatus: ourWords },
  { path: "/v3/kv/range", body: '{"key":"!!"}', onlyStatus: ourWords },
  { path: "/v3/kv/range", body: '{"key":', onlyStatus: ourWords },
  { path: "/v3/kv/range", body: '{"limit":"x"}', onlyStatus: ourWords },
  { path: "/v3/kv/range", body: `{"key":"${b64("a")}"} trailing` },
  post("/v3/kv/txn", { compare: [{ key: b64("a"), result: "NOTEQUAL", target: "VERSION", version: "2" }] }),
  post("/v3/kv/range", { key: b64("a"), sort_order: "DESC" }),
  post("/v3/kv/txn", {
    compare: [{ key: b64("a"), result: "EQUAL", target: "VERSION", version: "2" }],
    success: [{ request_range: { key: b64("a") } }, { request_put: { key: b64("t"), value: b64("x") } }],
    failure: [{ request_delete_range: { key: b64("a") } }],
  }),
  post("/v3/kv/txn", { success: [{ request_delete_range: { key: b64("t"), prev_kv: true } }] }),
  post("/v3/kv/txn", {}),
  post("/v3/kv/deleterange", { key: b64("b"), prev_kv: true }),
  post("/v3/kv/deleterange", { key: b64("b") }),
  post("/v3/lease/grant", { TTL: "60", ID: "77" }),
  post("/v3/lease/grant", { TTL: 60, ID: 77 }),
  // A number that JavaScript would round.
  { path: "/v3/lease/grant", body: '{"TTL":60,"ID":1234567890123456789}' },
  post("/v3/lease/timetolive", { ID: "1234567890123456789" }),
  { path: "/v3/lease/revoke", body: '{ "x": "\\"1", "ID": 1234567890123456789}' },
  post("/v3/kv/put", { key: b64("leased"), value: b64("x"), lease: "77" }),
  post("/v3/kv/put", { key: b64("leased"), lease: 78 }),
  post("/v3/lease/keepalive", { ID: "77" }),
  post("/v3/lease/keepalive", { ID: "79" }),
  { path: "/v3/lease/keepalive", body: '{"ID":"77"}{"ID":"78"}\n{"ID":77}' },
  { path: "/v3/lease/keepalive", body: "nonsense", onlyStatus: ourWords },
  post("/v3/kv/lease/timetolive", { ID: "77", keys: true }),
  post("/v3/lease/timetolive", { ID: "79" }),
  post("/v3/lease/leases", {}),
  post("/v3/kv/lease/revoke", { ID: "77" }),
  post("/v3/lease/revoke", { ID: "77" }),
  { ...post("/v3/watch", { create_request: { key: b64("a"), start_revision: "2" } }), lines: 2 },
  { ...post("/v3/watch", { create_request: { key: b64("b"), start_revision: 3, prev_kv: true } }), lines: 2 },
  { path: "/v3/watch", body: `{"create_request":{"key":"${b64("n")}"}}{"progress_request":{}}`, lines: 2 },
  post("/v3/lock/lock", { name: b64("l"), lease: "99" }),
  post("/v3/lease/grant", { TTL: "60", ID: "5" }),
  post("/v3/lock/lock", { name: b64("l"), lease: "5" }),
  post("/v3/lock/unlock", { key: b64("l/5") }),
  post("/v3/election/campaign", { name: b64("e"), lease: "5", value: b64("me") }),
  post("/v3/election/leader", { name: b64("e") }),
  post("/v3/election/leader", { name: b64("nobody") }),
  { ...post("/v3/election/observe", { name: b64("e") }), lines: 1 },
  post("/v3/election/resign", {}),
  post("/v3/cluster/member/list", {}),
  { ...post("/v3/maintenance/status", {}), onlyStatus: "the version of the API, and sizes" },
  { ...post("/v3/maintenance/alarm", { action: "GET" }), onlyStatus: "etcd's answer has no header" },
  post("/v3/kv/compaction", { revision: "3" }),
  post("/v3/kv/compaction", { revision: "2" }),
  post("/v3/kv/compaction", { revision: "999" }),
  post("/v3/kv/range", { key: b64("a"), revision: "2" }),
  { ...post("/v3/watch", { create_request: { key: b64("a"), start_revision: 1 } }), lines: 2 },
  { path: "/v3/kv/range", method: "GET" },
  { path: "/v3/kv/range", method: "PUT", body: "{}" },
  { path: "/v3/kv/range", method: "OPTIONS" },
  { path: "/v3/nothing", body: "{}" },
  { path: "/nothing", method: "GET" },
  { path: "/", method: "GET" },
  { path: "/health", method: "GET" },
  { path: "/health" },
  { path: "/version", method: "GET" },
  { path: "/version" },
  // While a member is known to be corrupt, changes are refused and everything else continues.
  corruptAlarm("ACTIVATE"),
  post("/v3/kv/put", { key: b64("a"), value: b64("3") }),
  post("/v3/kv/deleterange", { key: b64("a") }),
  post("/v3/kv/txn", { success: [{ request_put: { key: b64("t"), value: b64("x") } }] }),
  post("/v3/kv/txn", { success: [{ request_range: { key: b64("a") } }] }),
  post("/v3/kv/range", { key: b64("a") }),
  post("/v3/kv/range", { key: b64("a"), serializable: true }),
  post("/v3/kv/compaction", { revision: "4" }),
  post("/v3/lease/grant", { TTL: "60", ID: "6" }),
  post("/v3/lease/revoke", { ID: "5" }),
  post("/v3/lease/keepalive", { ID: "5" }),
  post("/v3/lease/leases", {}),
  post("/v3/auth/role/add", { name: "r" }),
  { path: "/health", method: "GET" },
  corruptAlarm("DEACTIVATE"),
  post("/v3/kv/put", { key: b64("a"), value: b64("4") }),
  { path: "/health", method: "GET" },
];

test("each call has etcd's status, type and bytes", async () => {
  const wrong: object[] = [];
  for (const call of calls) {
    const [ours, etcds] = await Promise.all(clusters.map((cluster) => ask(cluster, call)));
    if (JSON.stringify(ours) !== JSON.stringify(etcds)) wrong.push({ call, ours, etcds });
  }
  expect(wrong).toEqual([]);
  expect(calls.length).toBeGreaterThan(60);
});

test("a dashboard finds its metrics, and a value beside each", async () => {
  const [ours, etcds] = await Promise.all(
    clusters.map(async (cluster) => {
      const { text } = await ask(cluster, { path: "/metrics", method: "GET" });
      return new Set(text.map((line) => /^(\w+)/.exec(line)?.[1]).filter((name) => name !== undefined));
    }),
  );
  const wanted = [...ours!].filter((name) => /^(etcd|grpc|process)_/.test(name));
  expect(wanted.filter((name) => !etcds!.has(name))).toEqual([]);
  for (const name of [
    "etcd_server_has_leader",
    "etcd_server_leader_changes_seen_total",
    "etcd_mvcc_db_total_size_in_bytes",
    "etcd_disk_wal_fsync_duration_seconds_bucket",
    "grpc_server_handled_total",
    "process_resident_memory_bytes",
  ])
    expect(wanted).toContain(name);
});

test("a watching client that disconnects leaves nothing behind, and garbage ends only its own connection", async () => {
  const [ours] = clusters;
  const [host, port] = ours!.endpoints.split(":");
  const call = { ...post("/v3/watch", { create_request: { key: b64("gone") } }), lines: 1 };
  for (let round = 0; round < 20; round += 1) await ask(ours!, call);
  const watchers = async () => {
    const { text } = await ask(ours!, { path: "/metrics", method: "GET" });
    return text.find((line) => line.startsWith("etcd_debugging_mvcc_watcher_total"));
  };
  await expect.poll(watchers).toBe("etcd_debugging_mvcc_watcher_total 0");
  for (const garbage of [
    "PRI * HTTP/2.0\r\n\r\nnonsense",
    "\0\0\0\0\r\n\r\n",
    "POST /v3/kv/put HTTP/1.1\r\n\r\n",
  ]) {
    const socket = connect(Number(port), host).on("error", () => undefined);
    socket.resume().write(garbage);
    await new Promise((resolve) => socket.once("close", resolve));
  }
  expect((await ask(ours!, { path: "/health", method: "GET" })).status).toBe(200);
});
