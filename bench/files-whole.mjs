// Whole files by WebDAV on three nodes, each a process with a directory of its own on one disk, compared with
// the rates of the disk and of a plain HTTP server at the same time: `npm run bench -- files whole`.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, fdatasyncSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { freePort } from "./processes.mjs";
import { rowOf } from "./results.mjs";
import { until } from "./room.mjs";

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const largeBytes = Number(process.env["BENCH_LARGE"] ?? 256 * 2 ** 20);
const megabyte = 2 ** 20;
const clients = 64;
const forMs = 2_000;
const names = 1_000;

const agent = new Agent({ keepAlive: true, maxSockets: 2 * clients });

/** Sends one request; counts the bytes of the answer and discards them. */
function http(port, method, path, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const options = { agent, port, host: "127.0.0.1", method, path, headers };
    const asked = request(options, (answer) => {
      let bytes = 0;
      answer.on("data", (chunk) => (bytes += chunk.length));
      answer.on("error", reject);
      answer.on("end", () => {
        if (answer.statusCode < 400) resolve(bytes);
        else reject(new Error(`${method} ${path} at ${port}: ${answer.statusCode}`));
      });
    });
    asked.on("error", reject);
    if (body === undefined || Buffer.isBuffer(body)) asked.end(body);
    else body.pipe(asked);
  });
}

/** A put with retries, as clients retry when a busy machine has cost a primary its lease. */
async function put(port, path, body) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await http(port, "PUT", path, body);
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}

/** A node's status as JSON. */
async function statusOf(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  return answer.json();
}

export async function startCluster(room) {
  const port = await freePort();
  const main = fileURLToPath(new URL("../packages/leasehold/dist/cli/main.js", import.meta.url));
  const folder = room.folder("up");
  const up = spawn(process.execPath, [main, "files", "up", "--port", String(port), "--dir", folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.on("exit", () => up.kill("SIGTERM"));
  let said = "";
  up.stdout.on("data", (text) => (said += text));
  await until(() => said.includes("in a second terminal"), "three nodes are up");
  const ports = [port, port + 1, port + 2];
  return {
    ports,
    folder,
    async primaryOfNames() {
      for (const each of ports)
        if ((await statusOf(each)).primaries.some(({ path }) => path === "names")) return each;
      return ports[0];
    },
    async stop() {
      up.kill("SIGTERM");
      await once(up, "exit");
    },
  };
}

/** Starts a plain server of one folder in a process of its own. */
async function startPlain(folder) {
  const child = fork(fileURLToPath(new URL("files-plain.mjs", import.meta.url)), [folder]);
  process.on("exit", () => child.kill());
  const [port] = await once(child, "message");
  return { port, stop: () => child.kill() };
}

/** The median time, in ms, of sequential calls. */
async function medianMs(work, count) {
  const times = [];
  for (let at = 0; at < count; at += 1) {
    const fromMs = performance.now();
    await work(at);
    times.push(performance.now() - fromMs);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(count / 2)];
}

/** The number of calls a second, by all clients at once. */
async function perSecond(work) {
  const untilMs = performance.now() + forMs;
  const fromMs = performance.now();
  let done = 0;
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      while (performance.now() < untilMs) {
        await work(client);
        done += 1;
      }
    }),
  );
  return done / ((performance.now() - fromMs) / 1_000);
}

/** Three concurrent writers, each in a directory of its own. Returns the rate of one of them, MB/s. */
async function threeDisks(folder) {
  const fromMs = performance.now();
  await Promise.all(
    [1, 2, 3].map(async (number) => {
      const to = join(folder, String(number));
      mkdirSync(to, { recursive: true });
      const how = [`of=${join(to, "file")}`, "if=/dev/zero", "bs=1M", `count=${largeBytes / megabyte}`];
      const dd = spawn("dd", [...how, "conv=fsync"], { stdio: "ignore" });
      const [status] = await once(dd, "exit");
      if (status !== 0) throw new Error("dd has failed");
    }),
  );
  const seconds = (performance.now() - fromMs) / 1_000;
  rmSync(folder, { recursive: true });
  return largeBytes / seconds / 1e6;
}

export async function whole(room, add) {
  const cluster = await startCluster(room);
  const bare = room.folder("bare");
  const plain = await startPlain(bare);
  const large = Buffer.alloc(megabyte);
  for (let at = 0; at < megabyte; at += 4) large.writeUInt32LE((at * 2_654_435_761) % 2 ** 32, at);
  const small = large.subarray(0, 1_024);
  let files = 0;
  const next = (folder) => `/${folder}/${(files += 1)}`;
  const at = (turn) => cluster.ports[turn % cluster.ports.length];
  for (const folder of ["small", "middle", "list"]) await http(cluster.ports[0], "MKCOL", `/${folder}`);
  for (let count = 0; count < names; count += 1) await put(at(count), `/list/file-${count}`, small);
  writeFileSync(join(bare, "small"), small);
  writeFileSync(join(bare, "middle"), large);
  const synced = openSync(join(bare, "synced"), "w");
  const sync = (fd, position) => {
    writeSync(fd, small, 0, small.length, position);
    fdatasyncSync(fd);
  };
  const stream = async function* () {
    for (let sent = 0; sent < largeBytes; sent += megabyte) yield large;
  };
  const mbPerS = async (work) => {
    const fromMs = performance.now();
    const bytes = await work();
    return bytes / ((performance.now() - fromMs) / 1_000) / 1e6;
  };
  const primary = await cluster.primaryOfNames();
  await put(primary, "/small/read", small);
  await put(primary, "/middle/read", large);
  const largeHeaders = { "content-length": String(largeBytes) };
  let position = 0;
  const figures = [
    [
      "a synced write of 1 kB",
      "this disk",
      "ms",
      () => medianMs(() => sync(synced, (position += 4_096)), 100),
    ],
    [
      "a new file of 1 kB is put",
      "leasehold",
      "ms",
      () => medianMs((turn) => put(at(turn), next("small"), small), 100),
    ],
    [
      `new files of 1 kB are put by ${clients} clients`,
      "leasehold",
      "a second",
      () => perSecond((client) => put(at(client), next("small"), small)),
    ],
    [
      "a file of 1 kB is read",
      "plain HTTP server",
      "ms",
      () => medianMs(() => http(plain.port, "GET", "/small"), 200),
    ],
    [
      "a file of 1 kB is read",
      "leasehold",
      "ms",
      () => medianMs(() => http(primary, "GET", "/small/read"), 200),
    ],
    [
      "a file of 1 MB is put",
      "leasehold",
      "ms",
      () => medianMs((turn) => put(at(turn), next("middle"), large), 15),
    ],
    [
      "a file of 1 MB is read",
      "plain HTTP server",
      "ms",
      () => medianMs(() => http(plain.port, "GET", "/middle"), 40),
    ],
    [
      "a file of 1 MB is read",
      "leasehold",
      "ms",
      () => medianMs((turn) => http(at(turn), "GET", "/middle/read"), 40),
    ],
    [
      "a large file is written",
      "three dd conv=fsync at once, each",
      "MB/s",
      () => threeDisks(join(bare, "dd")),
    ],
    [
      "a large file is put",
      "leasehold",
      "MB/s",
      () =>
        mbPerS(async () => {
          await http(
            cluster.ports[0],
            "PUT",
            "/large",
            Readable.from(stream(), { objectMode: false }),
            largeHeaders,
          );
          return largeBytes;
        }),
    ],
    [
      "a large file is read",
      "plain HTTP server",
      "MB/s",
      () => mbPerS(() => http(plain.port, "GET", "/large")),
    ],
    [
      "a large file is read",
      "leasehold",
      "MB/s",
      () => mbPerS(() => http(cluster.ports[1], "GET", "/large")),
    ],
    [
      `PROPFIND of ${names} files`,
      "leasehold",
      "ms",
      () => medianMs((turn) => http(at(turn), "PROPFIND", "/list", undefined, { depth: "1" }), 10),
    ],
    [
      "GET of a name that does not exist",
      "leasehold",
      "ms",
      () => medianMs((turn) => http(at(turn), "GET", "/nothing").catch(() => 0), 50),
    ],
  ];
  const fd = openSync(join(bare, "large"), "w");
  for (let sent = 0; sent < largeBytes; sent += megabyte) writeSync(fd, large);
  closeSync(fd);
  const wanted = new RegExp(process.env["BENCH_ONLY"] ?? ".");
  const chosen = figures.filter(([figure]) => wanted.test(figure));
  const measured = chosen.map(() => []);
  for (let round = 0; round < rounds; round += 1)
    for (const [index, [, , , measure]] of chosen.entries()) measured[index].push(await measure());
  for (const [index, [figure, system, unit]] of chosen.entries())
    add(rowOf(`files: ${figure}`, system, unit, measured[index]));
  closeSync(synced);
  plain.stop();
  await cluster.stop();
}
