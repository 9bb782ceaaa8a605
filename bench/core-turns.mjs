// Checks that the core's heartbeats are on time under load: three servers, many keys, a thousand watches from
// the oldest change on, long reads, snapshots, a server that is far behind, a large deletion; one by one and
// all at once. Goals: no heartbeat is late by more than 50 ms, and no leader loses its leadership. Delays due
// to other processes on the machine and to garbage collection are reported separately.
// node bench/core-turns.mjs [keys, 1000000] (after `npm run build`; LEASEHOLD_DIST names another build)
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { credentials, makeClientConstructor } from "@grpc/grpc-js";

const dist = resolve(process.env.LEASEHOLD_DIST ?? "packages/leasehold/dist");
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const rpc = await load("etcd/gen/etcd/rpc_pb.js");
const { Maintenance } = await load("etcd/gen/etcd/cluster_pb.js");

const keys = Number(process.argv[2] ?? 1_000_000);
const putsPerRequest = 128;
const inFlight = 16;
const watches = 1_000;
const snapshotCount = 4_000;
// More than the log entries that the leader keeps after a snapshot (5,000), plus another snapshot.
const missedWrites = 10_000;
const heartbeatMs = 100;
/** About the most keys in one answer: 256 MiB as the core counts. */
const readMax = 500_000;
/** Smaller delays are not recorded. */
const worthTellingMs = 15;
const folder = mkdtempSync(join(tmpdir(), "lh-turns-"));
const bytes = (text) => new TextEncoder().encode(text);

// Runs in each server and records delays. For a turn of the event loop: when, how late its timer was, how
// long the thread had a processor, how long it waited for one meanwhile, and how long garbage was collected.
// For a heartbeat: when it arrived, and how late.
const probe = join(folder, "probe.mjs");
writeFileSync(
  probe,
  `import { appendFileSync, readFileSync } from "node:fs";
import { PerformanceObserver } from "node:perf_hooks";
const { Raft } = await import(${JSON.stringify(pathToFileURL(join(dist, "../../core/dist/raft/raft.js")).href)});
const [everyMs, tellMs, heartbeatMs, lateMs] = [10, 200, ${heartbeatMs}, ${worthTellingMs}];
const usage = () => readFileSync("/proc/thread-self/schedstat", "utf8").split(" ").map((ns) => Number(ns) / 1e6);
const wall = (atMs) => (performance.timeOrigin + atMs).toFixed(1);
let [lines, pauses, turns, heard, toldMs] = [[], [], [], new Map(), 0];
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) pauses.push([startTime, duration]);
}).observe({ entryTypes: ["gc"] });
const { step } = Raft.prototype;
Raft.prototype.step = function (message) {
  if (message.kind === "heartbeat") {
    const [nowMs, key] = [performance.now(), message.from + " " + message.term];
    const late = nowMs - (heard.get(key) ?? nowMs) - heartbeatMs;
    if (late > lateMs) lines.push(["heartbeat", wall(nowMs), late.toFixed(1)].join(" "));
    heard = new Map([[key, nowMs]]);
  }
  return step.call(this, message);
};
let [lastMs, [lastUsed, lastWaited]] = [performance.now(), usage()];
setInterval(() => {
  const [nowMs, [used, waited]] = [performance.now(), usage()];
  const late = nowMs - lastMs - everyMs;
  if (late > lateMs) turns.push([lastMs, nowMs, late, used - lastUsed, waited - lastWaited]);
  [lastMs, lastUsed, lastWaited] = [nowMs, used, waited];
  if (nowMs - toldMs < tellMs) return;
  toldMs = nowMs;
  // Pauses are told a little later than they are.
  for (const [from, to, late, used, waited] of turns.filter(([, to]) => to < nowMs - tellMs)) {
    const within = pauses.filter(([at]) => at >= from && at < to).reduce((sum, [, ms]) => sum + ms, 0);
    lines.push(["turn", wall(to), ...[late, used, waited, within].map((ms) => ms.toFixed(1))].join(" "));
  }
  turns = turns.filter(([, to]) => to >= nowMs - tellMs);
  pauses = pauses.filter(([at]) => at > nowMs - 10 * tellMs);
  if (lines.length > 0) appendFileSync(process.env.LEASEHOLD_PROBE, lines.join("\\n") + "\\n");
  lines = [];
}, everyMs).unref();
`,
);

const ports = await Promise.all(Array.from({ length: 6 }, freePort));
const peers = [0, 1, 2].map((index) => `s${index}=http://127.0.0.1:${ports[3 + index]}`).join(",");
const servers = [0, 1, 2].map((index) => ({
  name: `s${index}`,
  endpoint: `127.0.0.1:${ports[index]}`,
  probe: join(folder, `probe-${index}`),
  output: "",
}));
for (const server of servers) start(server);

/** Adapts a service to the form that clients of grpc-js expect. */
const serviceDefinition = ({ methods, typeName }) =>
  Object.fromEntries(
    methods.map(({ name, methodKind, input, output }) => [
      name,
      {
        path: `/${typeName}/${name}`,
        requestStream: methodKind === "bidi_streaming",
        responseStream: methodKind !== "unary",
        requestSerialize: (message) => Buffer.from(toBinary(input, message)),
        responseDeserialize: (bytes) => fromBinary(output, bytes),
      },
    ]),
  );
const Client = (service) => makeClientConstructor(serviceDefinition(service), "client");
const options = { "grpc.max_receive_message_length": -1 };
for (const server of servers) {
  const make = (service) => new (Client(service))(server.endpoint, credentials.createInsecure(), options);
  Object.assign(server, { kv: make(rpc.KV), watch: make(rpc.Watch), maintenance: make(Maintenance) });
}

try {
  await ready();
  await phase("nothing", () => sleep(3_000));
  await phase(`${keys} keys are written, and snapshots`, fill);
  const leader = await leaderOf();
  const follower = servers.find((server) => server !== leader);
  await phase(`${watches} watches, most of them quiet, begin with the oldest change`, () => watchAll(leader));
  await phase("the same beside writes and snapshots", () => write(snapshotCount * 1.5));
  await phase(`${Math.min(keys, readMax)} keys are read at once`, () =>
    ask(leader.kv, "Range", range({ limit: BigInt(Math.min(keys, readMax)) })),
  );
  await phase("all keys are counted, ten times at once", async () => {
    await Promise.all(Array.from({ length: 10 }, () => ask(leader.kv, "Range", range({ countOnly: true }))));
  });
  await phase("all keys in the order of their last change, the last ten", () =>
    ask(leader.kv, "Range", range({ sortTarget: 3, sortOrder: 2, limit: 10n })),
  );
  await phase("a server that is far behind gets all of it", async () => {
    follower.child.kill("SIGKILL");
    await write(missedWrites);
    start(follower);
    await ready();
  });
  await phase("all of that at once", async () => {
    follower.child.kill("SIGKILL");
    await write(missedWrites);
    start(follower);
    const reads = Array.from({ length: 4 }, () =>
      ask(leader.kv, "Range", range({ limit: BigInt(Math.min(keys, readMax)) })),
    );
    await Promise.all([watchAll(leader), write(snapshotCount * 1.5), ready(), ...reads]);
  });
  await phase("all but a few revisions are compacted away", async () => {
    const { header } = await ask(leader.kv, "Range", create(rpc.RangeRequestSchema, { key: bytes("k") }));
    await ask(leader.kv, "Compact", create(rpc.CompactionRequestSchema, { revision: header.revision - 10n }));
    await sleep(5_000);
  });
  await phase("all keys are deleted in one request", async () => {
    const request = create(rpc.DeleteRangeRequestSchema, { key: bytes("k/"), rangeEnd: bytes("k0") });
    await ask(leader.kv, "DeleteRange", request, 120_000).catch((error) => console.log(`  ${error.details}`));
    await sleep(10_000);
  });
} finally {
  for (const { child } of servers) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}
process.exit();

/** Runs one phase and prints its effect on the servers. */
async function phase(what, body) {
  const fromMs = Date.now();
  const elections = electionsSoFar();
  const snapshots = newestSnapshots();
  let failure = "";
  await body().catch((error) => (failure = `, FAILED: ${error.details ?? error.message}`));
  const tookMs = Date.now() - fromMs;
  await sleep(1_000);
  const told = servers.map(({ probe: file }) => newsOf(file, fromMs));
  const turns = told.flatMap(({ turns }) => turns);
  const pauses = turns.map(({ pauseMs }) => pauseMs);
  const late = told.flatMap(({ heartbeats }, to) =>
    heartbeats.map((each) => ({ ...each, excusedMs: excuses(told, to, each) })),
  );
  const most = (figures) =>
    Math.max(0, ...figures)
      .toFixed(0)
      .padStart(4);
  console.log(
    [
      `${(tookMs / 1_000).toFixed(1).padStart(6)} s`,
      `turn ${most(turns.map(({ ownMs }) => ownMs))} ms`,
      `garbage ${most(pauses)} ms`,
      `heartbeat late ${most(late.map(({ lateMs }) => lateMs))} ms, by itself ${most(late.map(({ lateMs, excusedMs }) => lateMs - excusedMs))} ms`,
      `${newestSnapshots().filter((name, index) => name !== snapshots[index]).length} servers wrote snapshots`,
      `${electionsSoFar() - elections} new leaders  ${what}${failure}`,
    ].join("; "),
  );
}

function newestSnapshots() {
  return servers.map(({ name }) => {
    const snapshots = join(folder, name, "snapshots");
    const names = existsSync(snapshots) ? readdirSync(snapshots) : [];
    return names
      .filter((each) => each.endsWith(".snap"))
      .sort()
      .at(-1);
  });
}

/** The records of a server's probe since `sinceMs`. */
function newsOf(file, sinceMs) {
  const lines = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
  const news = lines.map((line) => line.split(" ")).filter(([, atMs]) => Number(atMs) > sinceMs);
  const figures = (kind) => news.filter(([each]) => each === kind).map((words) => words.slice(1).map(Number));
  const turns = figures("turn").map(([toMs, lateMs, usedMs, waitedMs, pauseMs]) => {
    // During garbage collection a thread may also wait for helper threads that have no processor. Neither
    // figure shows that.
    const ownMs = Math.max(0, Math.min(usedMs, lateMs - waitedMs - pauseMs));
    return { fromMs: toMs - lateMs, toMs, lateMs, ownMs, pauseMs };
  });
  return { turns, heartbeats: figures("heartbeat").map(([atMs, lateMs]) => ({ atMs, lateMs })) };
}

/**
 * The part of a heartbeat's delay during which its sender or its receiver had no processor or collected
 * garbage. The sender is unknown: the worse of the other two servers is taken.
 */
function excuses(told, receiver, { atMs, lateMs }) {
  const during = ({ turns }) =>
    turns
      .filter(({ fromMs, toMs }) => toMs > atMs - lateMs - heartbeatMs && fromMs < atMs)
      .reduce((sum, { lateMs, ownMs }) => sum + lateMs - ownMs, 0);
  const senders = told.filter((_, index) => index !== receiver).map(during);
  return Math.min(lateMs, during(told[receiver]) + Math.max(...senders));
}

function start(server) {
  const index = servers.indexOf(server);
  const words = ["core", "--name", server.name, "--data-dir", join(folder, server.name)];
  words.push("--initial-cluster", peers, "--snapshot-count", String(snapshotCount));
  const [client, peer] = [`http://${server.endpoint}`, `http://127.0.0.1:${ports[3 + index]}`];
  words.push("--listen-client-urls", client, "--advertise-client-urls", client);
  words.push("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer);
  const node = ["--max-old-space-size=6000", "--import", probe, join(dist, "cli", "main.js"), ...words];
  const env = { ...process.env, LEASEHOLD_PROBE: server.probe };
  server.child = spawn(process.execPath, node, { stdio: ["ignore", "pipe", "pipe"], env });
  for (const stream of [server.child.stdout, server.child.stderr])
    stream.on("data", (chunk) => (server.output += chunk));
}

function electionsSoFar() {
  return servers.reduce((sum, { output }) => sum + (output.match(/leads in term/g)?.length ?? 0), 0);
}

function ask(client, method, request, timeoutMs = 60_000) {
  return new Promise((resolve, reject) => {
    client[method](request, { deadline: Date.now() + timeoutMs }, (error, answer) =>
      error === null ? resolve(answer) : reject(error),
    );
  });
}

function range(fields) {
  return create(rpc.RangeRequestSchema, { key: bytes("k/"), rangeEnd: bytes("k0"), ...fields });
}

async function ready() {
  for (const server of servers)
    for (;;) {
      const request = create(rpc.RangeRequestSchema, { key: bytes("ready") });
      if ((await ask(server.kv, "Range", request, 2_000).catch(() => undefined)) !== undefined) break;
      if (server.child.exitCode !== null) throw new Error(server.output);
      await sleep(100);
    }
}

async function leaderOf() {
  for (const server of servers) {
    const status = await ask(server.maintenance, "Status", {}, 5_000).catch(() => undefined);
    if (status?.leader === status?.header.memberId && status !== undefined) return server;
  }
  throw new Error("nobody leads");
}

async function fill() {
  let next = 0;
  const leader = await leaderOf();
  const worker = async () => {
    while (next < keys) {
      const first = next;
      next += putsPerRequest;
      const success = Array.from({ length: Math.min(putsPerRequest, keys - first) }, (_, index) => {
        const value = {
          key: nameOf(first + index),
          value: bytes("v".repeat(20)),
        };
        return { request: { case: "requestPut", value } };
      });
      await ask(leader.kv, "Txn", create(rpc.TxnRequestSchema, { success }));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

/** Changes single keys, chosen anywhere. */
async function write(count) {
  let done = 0;
  const leader = await leaderOf();
  const worker = async () => {
    while (done < count) {
      done += 1;
      const value = { key: nameOf(Math.random() * keys), value: bytes("w".repeat(20)) };
      await ask(leader.kv, "Put", create(rpc.PutRequestSchema, value));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

/**
 * Watches single keys and narrow prefixes, which see no changes; a tenth of the watches cover a hundredth of
 * all keys each. Resolves when all have caught up.
 */
async function watchAll({ kv, watch }) {
  const { header } = await ask(kv, "Range", create(rpc.RangeRequestSchema, { key: bytes("k") }));
  const stream = watch.Watch();
  stream.on("error", () => undefined);
  const waiting = new Set();
  await new Promise((resolve, reject) => {
    stream.on("data", ({ watchId, header: told, created, canceled }) => {
      if (canceled) reject(new Error("a watch was refused"));
      if (watchId === -1n && told.revision >= header.revision) resolve();
      else if (created) waiting.add(watchId);
    });
    for (let index = 0; index < watches; index++) {
      const kind = index % 10 === 0 ? "wide" : index % 2 === 0 ? "prefix" : "key";
      const from = { wide: `q${index}/`, prefix: `q${index}/`, key: `q${index}` }[kind];
      const value = { key: bytes(from), startRevision: 2n };
      if (kind === "prefix") value.rangeEnd = bytes(`q${index}0`);
      if (kind === "wide") {
        const first = Math.floor((index / watches) * keys);
        Object.assign(value, { key: nameOf(first), rangeEnd: nameOf(first + keys / 100) });
      }
      stream.write(create(rpc.WatchRequestSchema, { requestUnion: { case: "createRequest", value } }));
    }
    const asking = setInterval(() => {
      if (waiting.size < watches) return;
      clearInterval(asking);
      const value = {};
      stream.write(create(rpc.WatchRequestSchema, { requestUnion: { case: "progressRequest", value } }));
    }, 50);
  });
}

function nameOf(number) {
  return bytes(`k/${String(Math.floor(number)).padStart(8, "0")}`);
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
