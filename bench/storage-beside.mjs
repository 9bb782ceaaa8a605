/**
 * Parts of `bench/storage.mjs`: leases on stores compared with the real `sanlock` (a delta lease of the same
 * paper, by `sanlock direct`, io_timeout 1 s) and with the common lock on one S3 object. Reports and skips
 * missing systems. Times are medians of five rounds.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { rowOf } from "./results.mjs";
import { library } from "./storage-library.mjs";
import { S3Lock } from "./storage-s3-lock.mjs";
import { s3Send, startBucket, startServer, stopServers } from "./storage-servers.mjs";

const execute = promisify(execFile);
const rounds = 5;
const takesPerRound = 20;
const renewals = 20;
const ttlMs = 2_000;
/**
 * δ is not a timeout there: exclusion depends on it, so on a busy machine it must be generous, and Δ several
 * times as long.
 */
const blockTtlMs = 4_000;
/** Once only: a take-over by sanlock with io_timeout 1 s takes more than a minute. */
const sanlockTakeovers = 1;

const sanlock = "/usr/sbin/sanlock";
const { open } = await library();
/** `beside` sets both. */
let root;
let print;

const progress = (text) => process.stderr.write(`${text}\n`);
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const timed = async (operation) => {
  const begun = performance.now();
  await operation();
  return performance.now() - begun;
};

// The grounds

const settings = `ttlMax=${ttlMs}ms&maxStoreLatency=200ms`;

function folders(name, count) {
  const paths = Array.from({ length: count }, (_, index) => join(root, `${name}-${index}`));
  for (const path of paths) mkdirSync(path);
  return paths.join(",");
}

function blocks(count) {
  const paths = Array.from({ length: count }, (_, index) => join(root, `block-${index}`));
  for (const path of paths) {
    writeFileSync(path, "");
    truncateSync(path, 40 << 20);
  }
  return paths.join(",");
}

async function grounds() {
  const found = {
    "one directory": `delta+file://${folders("one", 1)}?${settings}`,
    "three directories": `delta+file://${folders("three", 3)}?${settings}`,
    "three block files": `delta+block:${blocks(3)}?format&delay=400ms&slot-ttl=4s&ttlMax=${blockTtlMs}ms`,
  };
  const redis = [];
  for (let count = 0; count < 3; count++) redis.push(await startServer("redis", "RedisServer"));
  if (redis.every(Boolean)) {
    const hosts = redis.map(({ server }) => `127.0.0.1:${server.port}`).join(",");
    found["three Redis, appendfsync always"] = `delta+redis://${hosts}/0?${settings}`;
  }
  const s3 = await startBucket();
  if (s3 !== undefined) {
    found["one bucket (radosgw)"] =
      `delta+s3://bench/leases?endpoint=${s3.server.endpoint}&ttlMax=${ttlMs}ms&maxStoreLatency=600ms`;
  }
  return { found, s3 };
}

/** Creates a lockspace. Returns a function that runs `sanlock direct` on one of its host ids. */
async function lockspace(name) {
  const path = join(root, name);
  writeFileSync(path, "");
  truncateSync(path, 1 << 20);
  const direct = (action, host, before = []) => {
    const [command, ...words] = [
      ...before,
      sanlock,
      "direct",
      action,
      "-s",
      `L:${host}:${path}:0`,
      "-o",
      "1",
    ];
    return execute(command, words, { maxBuffer: 1 << 24 });
  };
  await direct("init", 0);
  return direct;
}

// The measurements

async function take({ found, s3 }) {
  for (const [ground, url] of Object.entries(found)) {
    progress(`free leases on ${ground}`);
    // On stores that cannot compare and set, each acquisition waits for Δ + 6δ.
    const isSlow = url.startsWith("delta+block");
    const leases = await open(url, { timeout: "30s" });
    const times = [];
    for (let round = 0; round < (isSlow ? 1 : rounds); round++) {
      const each = [];
      for (let count = 0; count < (isSlow ? 5 : takesPerRound); count++) {
        let lease;
        each.push(await timed(async () => (lease = await leases.acquire(`take/${round}/${count}`))));
        await lease.release();
      }
      times.push(median(each));
    }
    print("take a free lease", "ms", median(times), { ground });
    await leases.close();
  }
  if (s3 !== undefined) {
    const times = [];
    for (let count = 0; count < rounds * takesPerRound; count++) {
      const lock = new S3Lock((...request) => s3Send(s3, ...request), `lock-${count}`, ttlMs);
      times.push(await timed(() => lock.acquire()));
      await lock.release();
    }
    print("take a free lease", "ms", median(times), { ground: "an S3 object with If-None-Match" });
  }
  if (existsSync(sanlock)) {
    progress("free host ids by sanlock");
    const direct = await lockspace("sanlock-take");
    const times = [];
    for (let count = 1; count <= rounds; count++) times.push(await timed(() => direct("acquire_id", count)));
    print("take a free lease", "ms", median(times), { ground: "sanlock's delta lease, io_timeout 1 s" });
  }
}

const holderPath = fileURLToPath(new URL("storage-holder.mjs", import.meta.url));

async function holder(url, name, under = []) {
  const [command, ...words] = [...under, process.execPath, holderPath, url, name];
  const child = spawn(command, words, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  await new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("exit", (code) => reject(new Error(`a holder ended with ${code}`)));
  });
  return child;
}

async function takeover({ found, s3 }) {
  for (const [ground, url] of Object.entries(found)) {
    progress(`take-overs on ${ground}`);
    const leases = await open(url, { timeout: "30s" });
    const times = [];
    for (let round = 0; round < rounds; round++) {
      const name = `takeover/${round}`;
      const child = await holder(url, name);
      const waiting = leases.acquire(name, { wait: "1m" });
      // The longest possible wait: the waiter has waited for a while, and the last renewal comes just before
      // the end.
      await sleep(ttlMs / 2);
      await renewed(child, 1);
      child.kill("SIGKILL");
      let lease;
      times.push(await timed(async () => (lease = await waiting)));
      await lease.release();
    }
    print("take over from a killed holder, after its last renewal", "ms", median(times), {
      ground,
      ttlMs: leases.guarantees.ttlMaxMs,
      promised: Math.round(leases.guarantees.takeoverMsMax),
    });
    await leases.close();
  }
  if (s3 !== undefined) {
    const times = [];
    for (let round = 0; round < rounds; round++) {
      const [one, other] = [0, 1].map(
        () => new S3Lock((...request) => s3Send(s3, ...request), `takeover-${round}`, ttlMs),
      );
      await one.acquire();
      times.push(await timed(() => other.acquire()));
    }
    print("take over from a killed holder, after its last renewal", "ms", median(times), {
      ttlMs,
      ground: "an S3 object with If-None-Match, looked at every second",
    });
  }
  if (!existsSync(sanlock)) return;
  const times = [];
  for (let round = 0; round < sanlockTakeovers; round++) {
    progress("a take-over by sanlock takes more than a minute");
    const direct = await lockspace(`sanlock-takeover-${round}`);
    await direct("acquire_id", 1);
    // The holder is gone with its process. Another participant wants the same host id:
    times.push(
      await timed(() =>
        direct("acquire_id", 1, ["unshare", "--uts", "sh", "-c", 'hostname other; exec "$@"', "sh"]),
      ),
    );
  }
  print("take over from a killed holder, after its last renewal", "ms", median(times), {
    ground: "sanlock's delta lease, io_timeout 1 s",
    rounds: sanlockTakeovers,
  });
}

let traces = 0;

/**
 * The system calls of a holder under `strace`, on files below `root` and on sockets to servers, while it
 * renews `renew` times.
 */
async function traced(url, renew) {
  const log = join(root, `trace-${traces}`);
  const calls = "trace=read,write,readv,writev,pread64,pwrite64,fsync,rename,openat,mkdir,unlink";
  const child = await holder(url, `io/${(traces += 1)}`, [
    "strace",
    "-f",
    "-yy",
    "-s",
    "0",
    "-e",
    calls,
    "-o",
    log,
  ]);
  await renewed(child, renew);
  // `strace` ends with the holder, and the holder ends without its channel.
  child.disconnect();
  await once(child, "exit");
  const totals = { reads: 0, "bytes read": 0, writes: 0, "bytes written": 0, syncs: 0, renames: 0 };
  /** By thread: the trace shows a call in two parts when another thread's call comes in between. */
  const begun = new Map();
  for (const line of readFileSync(log, "utf8").split("\n")) {
    const [, thread, rest = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const text = rest.startsWith("<...") ? (begun.get(thread) ?? "") + rest : rest;
    if (rest.endsWith("<unfinished ...>")) begun.set(thread, rest);
    const result = Number(/ = (\d+)/.exec(rest)?.[1] ?? -1);
    if (result < 0 || !(text.includes(root) || text.includes("TCP:"))) continue;
    const [kind] = /^\w+/.exec(text) ?? [""];
    if (/^(?:p?read)/.test(kind) && result > 0) {
      totals.reads += 1;
      totals["bytes read"] += result;
    } else if (/^p?write/.test(kind)) {
      totals.writes += 1;
      totals["bytes written"] += result;
    } else if (kind === "fsync") totals.syncs += 1;
    else if (kind === "rename") totals.renames += 1;
  }
  return totals;
}

function renewed(child, renew) {
  return new Promise((resolve) => {
    child.once("message", resolve);
    child.send({ renew });
  });
}

async function io({ found }) {
  for (const [ground, url] of Object.entries(found)) {
    progress(`what a renewal on ${ground} reads and writes`);
    // Long timeouts, since tracing slows everything down. On stores that cannot compare and set, every holder
    // first waits for Δ, so it stays shorter.
    const patient = url
      .replace(/ttlMax=\d+ms/, `ttlMax=${url.startsWith("delta+block") ? 20 : 60}s`)
      .replace(/maxStoreLatency=\d+ms/, "maxStoreLatency=5s");
    // The first use creates the layout that later uses find.
    await traced(patient, 0);
    const [none, all] = [await traced(patient, 0), await traced(patient, renewals)];
    for (const [what, value] of Object.entries(all))
      print(`one renewal: ${what}`, "", (value - none[what]) / renewals, { ground });
  }
  if (!existsSync(sanlock)) return;
  const direct = await lockspace("sanlock-io");
  await direct("acquire_id", 1);
  const { stderr } = await direct("renew_id", 1, ["strace", "-f", "-e", "trace=io_submit,pread64,pwrite64"]);
  const bytes = (kind) => [...stderr.matchAll(new RegExp(`IOCB_CMD_${kind}[^}]*aio_nbytes=(\\d+)`, "g"))];
  for (const [what, kind] of [
    ["read", "PREAD"],
    ["written", "PWRITE"],
  ]) {
    const sizes = bytes(kind).map(([, size]) => Number(size));
    const ground = "sanlock's delta lease";
    print(`one renewal: operations ${what}`, "calls", sizes.length, { ground });
    print(
      `one renewal: bytes ${what}`,
      "bytes",
      sizes.reduce((sum, size) => sum + size, 0),
      { ground },
    );
  }
}

/** Measures these parts, and passes each row to `print`. */
export async function beside(names, printRow) {
  print = (figure, unit, value, { ground, ...more } = {}) =>
    printRow(rowOf(`storage: ${figure}`, ground, unit, [value], more));
  root = mkdtempSync(join(process.env["BENCH_ROOT"] ?? tmpdir(), "leasehold-bench-"));
  try {
    const everything = await grounds();
    for (const name of names) await parts[name](everything);
  } finally {
    await stopServers();
    rmSync(root, { recursive: true, force: true });
  }
}

export const parts = { take, takeover, io };
