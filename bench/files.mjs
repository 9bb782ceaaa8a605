// Replicated files on three nodes, each a process with a directory of its own and a member of Flease in it,
// all on one disk. Parts, most of them about a minute: whole throughput peer failover open chart large
// million. Default: all but the last three. Results go to bench/results/files.json; rows of other parts stay
// in the file.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { commitOf, machineOf } from "./machine.mjs";
import { freePort } from "./processes.mjs";
import { rowOf, save } from "./results.mjs";
import { Room, until } from "./room.mjs";
import { million } from "./files-million.mjs";
import { whole } from "./files-whole.mjs";

const output = fileURLToPath(new URL("results/files.json", import.meta.url));
const room = new Room(process.env["BENCH_ROOT"] ?? "/var/tmp");
const ids = ["a", "b", "c"];
const rounds = 5;
const rows = [];
const progress = (text) => process.stderr.write(`${text}\n`);

function add(row) {
  rows.push(row);
  console.log(JSON.stringify(row));
}

/** The resident memory of a process, bytes. */
const rssOf = (pid) =>
  1_024 * Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);

let clusters = 0;

/** Starts three nodes; `ttl` is that of the files' leases. */
async function startNodes(ttlMs, more = {}) {
  clusters += 1;
  const [members, nodes] = [{}, {}];
  for (const id of ids) {
    members[id] = `127.0.0.1:${await freePort()}`;
    nodes[id] = `127.0.0.1:${await freePort()}`;
  }
  const timing = { ttlMax: ttlMs, maxClockSkew: "50ms", rpcTimeout: Math.min(500, ttlMs / 6), ...more };
  const started = ids.map((id) => {
    const folder = room.folder(`${clusters}-${id}`);
    const options = { id, members, nodes, folder, ttl: ttlMs, timing };
    const script = fileURLToPath(new URL("files-node.mjs", import.meta.url));
    return new Node(fork(script, [JSON.stringify(options)]));
  });
  await Promise.all(started.map(({ ready }) => ready));
  return {
    ...Object.fromEntries(ids.map((id, index) => [id, started[index]])),
    all: started,
    stop: () => Promise.all(started.map((node) => node.stop())),
  };
}

class Node {
  #child;
  #number = 0;
  constructor(child) {
    this.#child = child;
    this.ready = once(child, "message");
  }

  get pid() {
    return this.#child.pid;
  }

  async do(task, how = {}) {
    const number = (this.#number += 1);
    this.#child.send({ number, task, ...how });
    for (;;) {
      const [answer] = await once(this.#child, "message");
      if (answer.number !== number) continue;
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer.value;
    }
  }

  async stop() {
    if (!this.#child.connected) return;
    this.#child.disconnect();
    await once(this.#child, "exit");
  }
}

const kinds = [
  { size: 65_536, random: false },
  { size: 65_536, random: true },
  { size: 1_048_576, random: false },
  { size: 1_048_576, random: true },
];
const span = 64 * 2 ** 20;
const forMs = 400;

async function throughput() {
  const nodes = await startNodes(3_000);
  const local = join(room.folder("local"), "file");
  const systems = {
    "leasehold, three nodes": (how) => nodes.a.do("replicated", { path: "bench", ...how }),
    "one file of this machine": (how) => nodes.b.do("local", { path: local, ...how }),
  };
  const measured = new Map();
  for (const measure of Object.values(systems))
    await measure({ size: 1_048_576, random: false, span, forMs: 1_500 });
  for (let round = 0; round < rounds; round += 1)
    for (const kind of kinds)
      for (const reads of [false, true])
        for (const [name, measure] of Object.entries(systems)) {
          const key = JSON.stringify({ name, reads, ...kind });
          const one = await measure({ ...kind, reads, span, forMs });
          measured.set(key, [...(measured.get(key) ?? []), one]);
        }
  for (const [key, values] of measured) {
    const { name, reads, size, random } = JSON.parse(key);
    const figure = `${reads ? "reads" : "writes"} of ${size / 1_024} kB, ${random ? "random" : "in order"}`;
    const of = (what, unit, value) => add(rowOf(`files: ${figure}, ${what}`, name, unit, values.map(value)));
    of("throughput", "MB/s", ({ bytesPerSecond }) => bytesPerSecond / 1e6);
    of("median", "µs", ({ medianUs }) => medianUs);
    of("99 %", "µs", ({ lateUs }) => lateUs);
  }
  await nodes.stop();
}

/** Sends one HTTP request; reads and discards the body of the answer. */
function http(port, method, path, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const asked = request({ port, host: "127.0.0.1", method, path, headers }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** Whole files by WebDAV: three nodes of Leasehold compared with `rclone serve webdav` on one directory. */
async function peer() {
  const port = await freePort();
  const up = spawn(process.execPath, [
    fileURLToPath(new URL("../packages/leasehold/dist/cli/main.js", import.meta.url)),
    "files",
    "up",
    "--port",
    String(port),
    "--dir",
    room.folder("up"),
  ]);
  process.on("exit", () => up.kill("SIGTERM"));
  let said = "";
  up.stdout.on("data", (text) => (said += text));
  await until(() => said.includes("in a second terminal"), "three nodes are up");
  const rclonePort = await freePort();
  const rclone = room.server(room.folder("rclone-log"), "rclone", [
    "serve",
    "webdav",
    room.folder("rclone"),
    "--addr",
    `127.0.0.1:${rclonePort}`,
  ]);
  await until(
    async () => (await http(rclonePort, "PROPFIND", "/", undefined, { depth: "0" })) === 207,
    "rclone serves",
  );
  const body = Buffer.alloc(1_048_576, 7);
  const systems = [
    ["leasehold, three nodes, WebDAV", port],
    ["rclone serve webdav, one directory", rclonePort],
  ];
  const measured = new Map();
  for (let round = -1; round < rounds; round += 1)
    for (const size of [65_536, 1_048_576])
      for (const [name, at] of systems) {
        const timesUs = { put: [], get: [] };
        const untilMs = performance.now() + 1_000;
        for (let count = 0; performance.now() < untilMs; count += 1)
          for (const [what, method] of [
            ["put", "PUT"],
            ["get", "GET"],
          ]) {
            const fromMs = performance.now();
            const status = await http(
              at,
              method,
              `/file-${size}-${count % 8}`,
              what === "put" ? body.subarray(0, size) : undefined,
            );
            if (status >= 300) throw new Error(`${name}: ${method} answered ${status}`);
            timesUs[what].push((performance.now() - fromMs) * 1_000);
          }
        if (round < 0) continue;
        for (const [what, all] of Object.entries(timesUs)) {
          const key = JSON.stringify([`files: ${what} a file of ${size / 1_024} kB, median`, name]);
          measured.set(key, [
            ...(measured.get(key) ?? []),
            all.toSorted((x, y) => x - y)[Math.floor(all.length / 2)],
          ]);
        }
      }
  for (const [key, values] of measured) add(rowOf(...JSON.parse(key), "µs", values));
  up.kill("SIGTERM");
  await once(up, "exit");
  rclone.kill();
}

/** The assumed rate error of steady clocks. The default allows for unsupervised clocks. */
const clockRateErrors = [undefined, 0.001];

/** The time from kill -9 of a file's primary to the acknowledgement of another node's next write. */
async function failover() {
  for (const clockRateError of clockRateErrors) {
    const [left, rest, whole, roundTrips] = [[], [], [], []];
    for (let round = 0; round < failoverRounds; round += 1) {
      const one = await killedPrimary(clockRateError);
      left.push(one.leftMs);
      whole.push(one.wholeMs);
      rest.push(one.wholeMs - one.leftMs);
      roundTrips.push(one.roundTripMs);
    }
    const more = { ttlMs: failoverTtlMs, maxClockSkewMs: 50, clockRateError: clockRateError ?? "default" };
    const row = (figure, values) =>
      add(rowOf(`files: ${figure}`, "leasehold, three nodes", "ms", values, more));
    row("primary killed, until the next write is acknowledged", whole);
    row("of that, what was left of the lease", left);
    row("of that, the rest", rest);
    row("a question to the primary at another node", roundTrips);
  }
}

const failoverTtlMs = 1_500;
const failoverRounds = 5;

async function killedPrimary(clockRateError) {
  const nodes = await startNodes(failoverTtlMs, { clockRateError });
  await nodes.a.do("create", { prefix: "f", count: 1 });
  const roundTripMs = await nodes.b.do("roundTrip", { path: "f/0" });
  const writing = nodes.b.do("writeOn", { path: "f/0", forMs: 1_000 + 1.8 * failoverTtlMs });
  await sleep(300 + Math.random() * 500);
  const { remainingMs: leftMs } = await nodes.a.do("leaseOf", { path: "f/0" });
  const killedMs = Date.now();
  process.kill(nodes.a.pid, "SIGKILL");
  const next = (await writing).find((atMs) => atMs > killedMs + 20);
  if (next === undefined) throw new Error("no write was acknowledged after the primary was killed");
  await nodes.stop();
  return { leftMs, wholeMs: next - killedMs, roundTripMs };
}

/**
 * Opens `count` files on three nodes, each with its lease, and measures memory, processor time, and lost
 * tenures.
 */
async function opened(count, ttlMs, watchMs, what) {
  const nodes = await startNodes(ttlMs);
  const before = await Promise.all(nodes.all.map((node) => node.do("status")));
  const each = Math.ceil(count / ids.length);
  const seconds = await Promise.all(
    ids.map((id) => nodes[id].do("create", { prefix: `open/${id}`, count: each })),
  );
  const made = await Promise.all(nodes.all.map((node) => node.do("status")));
  await sleep(watchMs);
  const now = await Promise.all(nodes.all.map((node) => node.do("status")));
  const sum = (all, of) => all.reduce((total, one) => total + of(one), 0);
  const files = each * ids.length;
  const resets = sum(now, ({ counters }) => counters.resets) - sum(before, ({ counters }) => counters.resets);
  const busy = sum(now, ({ cpuUs }) => cpuUs) - sum(made, ({ cpuUs }) => cpuUs);
  const held = Math.min(...now.map(({ resources }) => resources));
  const more = { files, ttlMs, watchedMs: watchMs };
  const name = "leasehold, three nodes";
  add(rowOf(`${what}: files created a second`, name, "files/s", [files / Math.max(...seconds)], more));
  add(rowOf(`${what}: tenures lost`, name, "tenures", [resets - files + Math.max(0, files - held)], more));
  add(
    rowOf(
      `${what}: memory of a node, rss`,
      name,
      "MB",
      now.map(({ rss }) => rss / 1e6),
      more,
    ),
  );
  add(
    rowOf(
      `${what}: processor time of all nodes for renewals`,
      name,
      "% of a core",
      [busy / 10 / watchMs],
      more,
    ),
  );
  await nodes.stop();
  return resets - files;
}

async function chart() {
  for (const ttlMs of [2_000, 5_000, 10_000])
    for (const count of [3_000, 10_000, 30_000])
      if ((await opened(count, ttlMs, 3 * ttlMs, "files: over the lease's timeout")) > 0) break;
}

async function large() {
  const bytes = Number(process.env["BENCH_BYTES"] ?? 10 * 2 ** 30);
  const nodes = await startNodes(3_000);
  const greatest = new Map();
  const watching = setInterval(() => {
    for (const [index, { pid }] of nodes.all.entries())
      greatest.set(index, Math.max(greatest.get(index) ?? 0, rssOf(pid)));
  }, 250);
  const putSeconds = await nodes.a.do("put", { path: "large", bytes });
  progress(`put in ${putSeconds.toFixed(0)} s`);
  const got = await nodes.b.do("get", { path: "large" });
  clearInterval(watching);
  if (got.bytes !== bytes || got.wrong > 0) throw new Error(`came back as ${JSON.stringify(got)}`);
  const more = { bytes };
  const name = "leasehold, three nodes";
  add(rowOf("files: one large file put", name, "MB/s", [bytes / putSeconds / 1e6], more));
  add(rowOf("files: and got by another node", name, "MB/s", [bytes / got.seconds / 1e6], more));
  add(
    rowOf(
      "files: meanwhile, memory of a node at most, rss",
      name,
      "MB",
      [...greatest.values()].map((rss) => rss / 1e6),
      more,
    ),
  );
  await nodes.stop();
}

const parts = {
  whole: () => whole(room, add),
  throughput,
  peer,
  failover,
  open: () => opened(10_000, 5_000, 20_000, "files: 10,000 open"),
  chart,
  large,
  million: () => million(room, add),
};
const wanted =
  process.argv.length > 2 ? process.argv.slice(2) : ["whole", "throughput", "peer", "failover", "open"];
for (const part of wanted) {
  if (parts[part] === undefined) throw new Error(`parts are ${Object.keys(parts).join(" ")}`);
  progress(part);
  await parts[part]();
  const machine = machineOf(room.folder("disk"), ["rclone"]);
  save(output, { at: new Date().toISOString(), commit: commitOf(), machine }, rows);
}
process.exit();
