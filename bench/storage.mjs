/**
 * Leases on storage compared with one durable write to the same disk or server, in turns: `npm run bench --
 * storage [file redis postgres s3]`. Prints one JSON object a line: medians of three rounds, and ratios to
 * that write. `LEASEHOLD_ALSO` names another build's `packages/leasehold/dist`, which is measured, too.
 * `--save` also adds the rows to `bench/results/latest.json`. Parts that run only on request: `held` keeps
 * 10,000 leases of `BENCH_TTL` on one directory alive; `take`, `takeover` and `io` compare with `sanlock` and
 * with a lock on one S3 object (`storage-beside.mjs`). On a quiet machine each part takes less than a minute,
 * but `takeover` and `io` two.
 */
import fs from "node:fs";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { commitOf, machineOf } from "./machine.mjs";
import { latest, rowOf, save } from "./results.mjs";
import { beside, parts } from "./storage-beside.mjs";
import { s3Send, startBucket, startServer, stopServers } from "./storage-servers.mjs";
import { library } from "./storage-library.mjs";

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3);
/** Operations of a round, by the number in flight. */
const operations = { 1: 40, 64: 256, 512: 512 };
/** The same for a server with some hundred operations a second, whose rounds would otherwise take minutes. */
const operationsOfSlow = { 1: 20, 64: 128, 512: 512 };
const heldLeases = Number(process.env["BENCH_HELD"] ?? 10_000);
const heldTtl = process.env["BENCH_TTL"] ?? "10s";
const heldMs = 30_000;
/** Debian packages whose versions are part of the results. */
const packages = ["etcd-server", "zookeeper", "redis-server", "postgresql", "radosgw"];
const recordBytes = 200;
const record = Buffer.alloc(recordBytes, "x");

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const three = (value) => Number(value.toPrecision(3));

/**
 * Runs `use(index)` `count` times, `inFlight` at a time. Resolves with the time of each and of all together,
 * ms.
 */
async function inTurns(count, inFlight, use) {
  const each = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next++;
      const begun = performance.now();
      await use(index);
      each.push(performance.now() - begun);
    }
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, worker));
  return { each, allMs: performance.now() - begun };
}

/** The operations on leases, by figure; each round has its own names. */
function leaseFigures(leases, rest) {
  const held = [];
  const take = (round, index) => leases.acquire(`s/${round}/${index}`, { ttl: "30s", autoRenew: false });
  const acquire = async (round, index) => (held[index] = await take(round, index));
  const release = (round, index) => held[index].release();
  const renew = (round, index) => held[index].renew();
  const figures = {
    "acquire a new name": acquire,
    renew,
    release,
    "acquire again": acquire,
    "release again": release,
  };
  return { figures, close: () => leases.close(), ...rest };
}

/** Rows of one kind of store: systems in turns, round by round. */
async function compare(systems, yardstick, print, counts = operations) {
  const samples = new Map();
  for (const inFlight of Object.keys(counts).map(Number))
    for (let round = 0; round < rounds; round += 1)
      for (const [system, { figures }] of Object.entries(systems))
        for (const [figure, use] of Object.entries(figures)) {
          const name = `${inFlight}-${round}`;
          const cpu = process.cpuUsage();
          const count = counts[inFlight];
          const { each, allMs } = await inTurns(count, inFlight, (index) => use(name, index));
          const { user, system: kernel } = process.cpuUsage(cpu);
          const key = JSON.stringify({ figure, system, inFlight });
          const list = samples.get(key) ?? samples.set(key, []).get(key);
          list.push({
            ms: inFlight === 1 ? median(each) : allMs / count,
            cpuUs: (user + kernel) / count,
          });
        }
  const yard = (inFlight) =>
    median(
      samples.get(JSON.stringify({ figure: "one write", system: yardstick, inFlight })).map(({ ms }) => ms),
    );
  for (const [key, list] of samples) {
    const { figure, system, inFlight } = JSON.parse(key);
    const row = (what, unit, values, more) =>
      print(rowOf(`storage: ${what}`, system, unit, values, { inFlight, ...more }));
    const times = list.map(({ ms }) => ms);
    const ratio = three(median(times) / yard(inFlight));
    if (inFlight === 1) row(figure, "ms", times, { ratio });
    else {
      const rates = times.map((ms) => 1_000 / ms);
      row(figure, "operations/s", rates, { ratio: three(1 / ratio) });
    }
    const cpu = list.map(({ cpuUs }) => cpuUs);
    row(`CPU, ${figure}`, "µs", cpu);
  }
  for (const { close } of Object.values(systems)) await close?.();
}

async function builds() {
  const also = process.env["LEASEHOLD_ALSO"];
  return [
    ["", (await library()).open],
    ...(also === undefined ? [] : [[", other build", (await import(`${also}/index.js`)).open]]),
  ];
}

async function leasesOn(name, addressOf) {
  const systems = {};
  for (const [suffix, open] of await builds()) {
    const leases = await open(addressOf(suffix === "" ? "a" : "b"), { timeout: "30s" });
    systems[`${name}${suffix}`] = leaseFigures(leases);
  }
  return systems;
}

// The kinds of storage

const settings = "ttlMax=5m&maxStoreLatency=5s";
const fileOf = Object.fromEntries(
  ["open", "write", "fdatasync", "fsync", "close", "rename"].map((name) => [name, promisify(fs[name])]),
);

/** Replaces a file's content durably; uses synchronous calls when only one replacement is in flight. */
function replaceFile(folder, index, isAlone) {
  const [next, path] = [join(folder, `${index}.next`), join(folder, `${index}`)];
  if (!isAlone) return replaceFileBeside(folder, next, path);
  const file = fs.openSync(next, "w");
  fs.writeSync(file, record);
  fs.fdatasyncSync(file);
  fs.closeSync(file);
  fs.renameSync(next, path);
  const directory = fs.openSync(folder, "r");
  fs.fsyncSync(directory);
  fs.closeSync(directory);
}

async function replaceFileBeside(folder, next, path) {
  const file = await fileOf.open(next, "w");
  await fileOf.write(file, record);
  await fileOf.fdatasync(file);
  await fileOf.close(file);
  await fileOf.rename(next, path);
  const directory = await fileOf.open(folder, "r");
  await fileOf.fsync(directory);
  await fileOf.close(directory);
}

async function file(root, print) {
  for (const name of ["a", "b", "yard"]) fs.mkdirSync(join(root, name));
  const one = (round, index) => replaceFile(join(root, "yard"), index, round.startsWith("1-"));
  await compare(
    {
      "write + fsync": { figures: { "one write": one } },
      ...(await leasesOn("delta+file", (name) => `delta+file://${join(root, name)}?${settings}`)),
    },
    "write + fsync",
    print,
  );
}

async function redis(_, print) {
  const found = await startServer("redis", "RedisServer");
  if (found === undefined) return;
  const { createClient } = await import("@redis/client");
  const { port } = found.server;
  const client = createClient({ RESP: 2, socket: { host: "127.0.0.1", port } });
  await client.connect();
  const script =
    "if redis.call('HGET',KEYS[1],ARGV[1]) ~= ARGV[2] then redis.call('HSET',KEYS[1],ARGV[1],ARGV[3]) end return 1";
  const one = (_round, index) =>
    client.sendCommand(["EVAL", script, "1", "yard", `${index}`, "-", String(record)]);
  const close = () => client.close();
  await compare(
    {
      EVAL: { figures: { "one write": one }, close },
      ...(await leasesOn(
        "delta+redis",
        (name) => `delta+redis://127.0.0.1:${port}/0?key=${name}&${settings}`,
      )),
    },
    "EVAL",
    print,
  );
}

async function postgres(_, print) {
  const found = await startServer("postgres", "PostgresServer");
  if (found === undefined) return;
  const { default: pg } = await import("pg");
  const { port } = found.server;
  const pool = new pg.Pool({ host: "127.0.0.1", port, user: "boss", database: "postgres", max: 4 });
  await pool.query("create table yard (name text primary key, content bytea not null)");
  await pool.query("insert into yard select i::text, '' from generate_series(0, 1023) i");
  const update = "update yard set content = $2 where name = $1 returning 1";
  const one = (_round, index) => pool.query(update, [`${index}`, record]);
  await compare(
    {
      UPDATE: { figures: { "one write": one }, close: () => pool.end() },
      ...(await leasesOn(
        "delta+postgres",
        (name) => `delta+postgres://boss@127.0.0.1:${port}/postgres?schema=${name}&${settings}`,
      )),
    },
    "UPDATE",
    print,
  );
}

async function s3(_, print) {
  const bucket = await startBucket();
  if (bucket === undefined) return;
  const one = async (round, index) => {
    const answer = await s3Send(
      bucket,
      "PUT",
      `yard-${round}-${index}`,
      { "if-none-match": "*" },
      String(record),
    );
    await answer.text();
    if (!answer.ok) throw new Error(`a conditional PUT was answered with ${answer.status}`);
  };
  await compare(
    {
      "conditional PUT": { figures: { "one write": one } },
      ...(await leasesOn(
        "delta+s3",
        (name) => `delta+s3://bench/${name}?endpoint=${bucket.server.endpoint}&${settings}`,
      )),
    },
    "conditional PUT",
    print,
    operationsOfSlow,
  );
}

/** Acquires many leases on one directory and keeps them: measures the losses and the cost. */
async function held(root, print) {
  for (const [suffix, open] of await builds()) {
    const folder = join(root, `held${suffix}`);
    fs.mkdirSync(folder);
    const leases = await open(`delta+file://${encodeURI(folder)}?ttlMax=${heldTtl}&maxStoreLatency=2s`, {
      timeout: "30s",
    });
    globalThis.gc?.();
    const heap = process.memoryUsage().heapUsed;
    const list = [];
    let lost = 0;
    let failed = 0;
    const taken = await inTurns(heldLeases, 512, async (index) => {
      try {
        const lease = await leases.acquire(`held/${index}`, { wait: "1m" });
        lease.signal.addEventListener("abort", () => (lost += 1));
        list.push(lease);
      } catch {
        failed += 1;
      }
    });
    const atEnd = lost;
    globalThis.gc?.();
    const bytes = (process.memoryUsage().heapUsed - heap) / list.length;
    const cpu = process.cpuUsage();
    const begun = performance.now();
    await new Promise((resolve) => setTimeout(resolve, heldMs));
    const { user, system } = process.cpuUsage(cpu);
    const seconds = (performance.now() - begun) / 1_000;
    const more = { inFlight: 512, leases: heldLeases, ttl: heldTtl };
    const print1 = (figure, unit, value) =>
      print(rowOf(`storage: held, ${figure}`, `delta+file${suffix}`, unit, [value], more));
    print1("taken", "leases/s", (list.length * 1_000) / taken.allMs);
    print1("not taken", "leases", failed);
    print1("lost while they were taken", "leases", atEnd);
    print1(`lost in ${heldMs / 1_000} s`, "leases", lost - atEnd);
    print1("heap for one", "bytes", bytes);
    print1("CPU to hold all", "share of a core", (user + system) / 1e6 / seconds);
    const close = performance.now();
    await Promise.race([leases.close(), new Promise((resolve) => setTimeout(resolve, 60_000).unref())]);
    print1("closed", "ms", performance.now() - close);
  }
}

const kinds = { file, redis, postgres, s3, held };
/** Measured by default. */
const usual = ["file", "redis", "postgres", "s3"];

/** Measures these kinds of storage, and passes each row to `print`. */
async function storage(names, print) {
  const root = mkdtempSync(join(process.env["BENCH_ROOT"] ?? tmpdir(), "leasehold-storage-"));
  try {
    for (const name of names) {
      process.stderr.write(`${name}\n`);
      await kinds[name](root, print);
    }
  } finally {
    await stopServers();
    rmSync(root, { recursive: true, force: true });
  }
}

const words = process.argv.slice(2);
const given = words.filter((word) => word !== "--save");
const unknown = given.find((name) => !(name in kinds) && !(name in parts));
if (unknown !== undefined) throw new Error(`there is no ${unknown}: ${Object.keys({ ...kinds, ...parts })}`);
const names = given.length > 0 ? given : usual;
const rows = [];
const print = (row) => {
  rows.push(row);
  console.log(JSON.stringify(row));
};
await storage(
  names.filter((name) => name in kinds),
  print,
);
const others = names.filter((name) => name in parts);
if (others.length > 0) await beside(others, print);
if (words.includes("--save"))
  save(
    latest,
    { at: new Date().toISOString(), commit: commitOf(), machine: machineOf(tmpdir(), packages) },
    rows,
  );
process.exit(0);
