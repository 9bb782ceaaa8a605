// How late heartbeats of the core are while it has a lot to do: three servers, many keys, a thousand watches, long reads, snapshots, a
// server that is far behind, a large deletion. For each server: how late a timer of 10 ms was, as heartbeats would be; the processor time that
// its thread used between two of them, which others on the machine do not lengthen; and the longest collection of garbage.
// node bench/core-turns.mjs [keys, 1000000]    (after `npm run build`; LEASEHOLD_DIST names another build)
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { create } from "@bufbuild/protobuf";
import { credentials, makeClientConstructor } from "@grpc/grpc-js";

const dist = resolve(process.env.LEASEHOLD_DIST ?? "dist");
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const rpc = await load("core/gen/etcd/rpc_pb.js");
const { Maintenance } = await load("core/gen/etcd/cluster_pb.js");
const { serviceDefinition } = await load("core/server/grpc/services.js");

const keys = Number(process.argv[2] ?? 1_000_000);
const putsPerRequest = 128;
const inFlight = 16;
const watches = 1_000;
const snapshotCount = 4_000;
// More than the leader keeps of its log behind a snapshot (5,000), and another snapshot.
const missedWrites = 10_000;
const folder = mkdtempSync(join(tmpdir(), "lh-turns-"));
const bytes = (text) => new TextEncoder().encode(text);

const probe = join(folder, "probe.mjs");
writeFileSync(
  probe,
  `import { appendFileSync, readFileSync } from "node:fs";
import { PerformanceObserver } from "node:perf_hooks";
const file = process.env.LEASEHOLD_PROBE;
const everyMs = 10;
const usedMs = () => Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[0]) / 1e6;
let [lastMs, lastUsedMs, lateMs, busyMs, pauseMs, toldMs] = [performance.now(), usedMs(), 0, 0, 0, 0];
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) pauseMs = Math.max(pauseMs, duration);
}).observe({ entryTypes: ["gc"] });
setInterval(() => {
  const nowMs = performance.now();
  lateMs = Math.max(lateMs, nowMs - lastMs - everyMs);
  const used = usedMs();
  busyMs = Math.max(busyMs, used - lastUsedMs);
  [lastMs, lastUsedMs] = [nowMs, used];
  if (nowMs - toldMs < 200) return;
  appendFileSync(file, [Date.now(), lateMs.toFixed(1), busyMs.toFixed(1), pauseMs.toFixed(1)].join(" ") + "\\n");
  [toldMs, lateMs, busyMs, pauseMs] = [nowMs, 0, 0, 0];
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
  await phase("all keys are read at once", () => ask(leader.kv, "Range", range({ limit: 0n })));
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

/** Runs it, and says what it did to the servers. */
async function phase(what, body) {
  const beforeMs = Date.now();
  const elections = electionsSoFar();
  const startMs = performance.now();
  let failure = "";
  await body().catch((error) => (failure = `, FAILED: ${error.details ?? error.message}`));
  const tookMs = performance.now() - startMs;
  await sleep(500);
  const seen = servers.map(({ probe: file }) => {
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const figures = lines.map((line) => line.split(" ").map(Number)).filter(([atMs]) => atMs > beforeMs);
    const most = (index) => Math.max(0, ...figures.map((figure) => figure[index]));
    return `${most(1).toFixed(0)}/${most(2).toFixed(0)}/${most(3).toFixed(0)}`;
  });
  const changed = electionsSoFar() - elections;
  console.log(
    `${what}: ${(tookMs / 1_000).toFixed(1)} s; late/busy/gc at most ${seen.join(", ")} ms; ${changed} changes of leader${failure}`,
  );
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
          key: bytes(`k/${String(first + index).padStart(8, "0")}`),
          value: bytes("v".repeat(20)),
        };
        return { request: { case: "requestPut", value } };
      });
      await ask(leader.kv, "Txn", create(rpc.TxnRequestSchema, { success }));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

/** Single changes of keys anywhere. */
async function write(count) {
  let done = 0;
  const leader = await leaderOf();
  const worker = async () => {
    while (done < count) {
      done += 1;
      const key = bytes(`k/${String(Math.floor(Math.random() * keys)).padStart(8, "0")}`);
      await ask(leader.kv, "Put", create(rpc.PutRequestSchema, { key, value: bytes("w".repeat(20)) }));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

/** Single keys, narrow prefixes, and a few of a tenth of all keys; resolves when each has caught up. */
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
      if (kind === "wide")
        Object.assign(value, { key: bytes(`k/${index % 100}9`), rangeEnd: bytes(`k/${index % 100}99`) });
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

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
