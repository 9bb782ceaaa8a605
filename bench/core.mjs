// Compares the core with Debian's etcd: three servers each on one disk, loaded by one Go program with etcd's
// own client. Prints one JSON object a line, and tables of medians on the terminal. Reports missing packages
// (golang-etcd-server-dev, etcd-server). After `npm run build`:
//   node bench/core.mjs [--figures put,read,…] [--in-flight 1,64,512] [--rounds 5] [--seconds 2]
//   [--asked leader,follower]: the server that gets the load of a single connection. Several connections are
//   spread over all servers ("asked": "all"). Puts seen by watches go to the leader, with watches at all servers.
//   [--warm-up 5]: seconds of sequential puts at each server before anything is measured: Node compiles hot code
//   [--once hold,expire,elect,restart] [--rounds-once 3]: on new servers in each round; "" leaves them out,
//   as with --figures
//   [--one-core]: one server of each system on core 0, and the load on core 1 (`taskset`), with nothing of "once"
//   [--save]: adds the rates to the results that the charts are drawn from (`npm run bench -- report`)
import { Console } from "node:console";
import { execFileSync, spawn } from "node:child_process";
import { once as event } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { commitOf, machineOf } from "./machine.mjs";
import { once as parts } from "./core/once.mjs";
import { Progress } from "./progress.mjs";
import { latest, rowOf, save } from "./results.mjs";
import { Room, until, usageOf } from "./room.mjs";
import * as core from "./systems/core.mjs";
import * as etcd from "./systems/etcd.mjs";
import { leaderOf } from "./systems/like-etcd.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const gocode = "/usr/share/gocode";
const warmUpMs = 1_500;
/** The number of calls on one connection, as in `load.go`. */
const callsPerConnection = 64;

const { values } = parseArgs({
  options: {
    figures: {
      type: "string",
      default: "put,read,serializable,grant,create,keepalive,keepalive-stream,fan-out",
    },
    once: { type: "string", default: Object.keys(parts).join(",") },
    "rounds-once": { type: "string", default: "3" },
    "in-flight": { type: "string", default: "1,64,512" },
    asked: { type: "string", default: "leader,follower" },
    "warm-up": { type: "string", default: "5" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "2" },
    disk: { type: "string", default: tmpdir() },
    out: { type: "string" },
    save: { type: "boolean", default: false },
    "one-core": { type: "boolean", default: false },
  },
});
const listed = (text) => text.split(",").filter((one) => one !== "");
const figures = listed(values.figures);
const isOneCore = values["one-core"];
const [serverCore, loadCore] = isOneCore ? [0, 1] : [undefined, undefined];
const once = isOneCore ? [] : listed(values.once);
const widths = values["in-flight"].split(",").map(Number);
const places = isOneCore ? ["leader"] : listed(values.asked);
const longWarmUpMs = Number(values["warm-up"]) * 1_000;
const rounds = Number(values.rounds);
const roundsOnce = Number(values["rounds-once"]);
const forMs = Number(values.seconds) * 1_000;

/** etcd's Go client comes from Debian's package, so that nothing is downloaded. */
function buildLoad(room) {
  if (!existsSync(join(gocode, "src/go.etcd.io/etcd/clientv3")) || !existsSync("/usr/bin/etcd"))
    throw new Error("apt-get install golang-go golang-etcd-server-dev etcd-server");
  const program = join(room.folder("load"), "load");
  const cache = join(tmpdir(), "leasehold-bench-go");
  const env = { ...process.env, GO111MODULE: "off", GOPATH: gocode, GOCACHE: cache };
  execFileSync("go", ["build", "-o", program, "."], { cwd: join(here, "core"), env, stdio: "inherit" });
  return program;
}

/** The number of watches that each put notifies. */
const watches = 1_000;
const widthsOf = (figure) => (figure === "fan-out" ? [watches] : widths);
const placesOf = (inFlight) => (inFlight <= callsPerConnection ? places : ["all"]);
const cellsOf = (figure) =>
  widthsOf(figure).flatMap((inFlight) => placesOf(inFlight).map((asked) => ({ inFlight, asked })));

async function load(program, hosts, figure, inFlight, ms = forMs) {
  const words = [program, hosts.join(","), figure, String(inFlight), String(ms)];
  const [command, ...rest] = isOneCore ? ["taskset", "-c", String(loadCore), ...words] : words;
  const child = spawn(command, rest, {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (data) => (said += data));
  const [code] = await event(child, "close");
  if (code !== 0) throw new Error(`the load of ${figure} with ${inFlight} in flight has failed`);
  return JSON.parse(said);
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const rounded = (number) => Number(number.toPrecision(3));

/** The leader; there may be none for a while. */
async function leading({ connection }) {
  let leader;
  await until(async () => (leader = await leaderOf(connection)) !== undefined, "a leader");
  return leader;
}

/** The servers, beginning with the one that gets the load. */
const beginningWith = (hosts, first) => hosts.map((_, index) => hosts[(first + index) % hosts.length]);

/**
 * Repeats the measurement unless one server led throughout: otherwise it is unclear whether the leader was
 * measured.
 */
async function measure(program, system, figure, inFlight, asked) {
  for (;;) {
    const leader = await leading(system);
    const hosts = beginningWith(system.connection, asked === "follower" ? leader + 1 : leader);
    const found = await measureAt(program, system.servers, hosts, figure, inFlight);
    if ((await leading(system)) === leader) return found;
  }
}

async function measureAt(program, servers, connection, figure, inFlight) {
  const usage = () => servers.map(({ pid }) => usageOf(pid));
  const sum = (all, name) => all.reduce((total, one) => total + one[name], 0);
  const before = usage();
  const { done, seconds, p50Us, p99Us, clientCpuUs } = await load(
    program,
    connection,
    figure,
    inFlight,
    forMs,
  );
  const after = usage();
  // The servers' CPU time includes the load's own warm-up, a fifth of the time, and its preparation.
  return {
    perSecond: done / seconds,
    p50Us,
    p99Us,
    clientCpuUs: clientCpuUs / done,
    serverCpuUs: (sum(after, "cpuUs") - sum(before, "cpuUs")) / (done * 1.2),
    // The cores that the servers used. The load's own warm-up adds a fifth to the measured time.
    cores: (sum(after, "cpuUs") - sum(before, "cpuUs")) / (seconds * 1.2 * 1e6),
    residentMiB: sum(after, "residentBytes") / 2 ** 20,
  };
}

/** Alternates the order of the systems, so that other work on the machine affects both alike. */
const inTurn = (round, both) => (round % 2 === 0 ? both : both.toReversed());

/** Rates for the charts, under the names that the systems have there. */
const drawn = [];
const inResults = { core: "leasehold core", etcd: "etcd" };

async function measureRates(room, program, progress) {
  const systems = [
    ["core", await core.start(room, serverCore)],
    ["etcd", await etcd.start(room, serverCore)],
  ];
  for (const [, system] of systems) {
    await load(program, system.connection, "put", 64, warmUpMs);
    for (const first of system.connection.keys())
      await load(program, beginningWith(system.connection, first), "put", 1, longWarmUpMs);
  }
  const rows = [];
  for (const figure of figures)
    for (const { inFlight, asked } of cellsOf(figure)) {
      const found = new Map(systems.map(([name]) => [name, []]));
      for (let round = 0; round < rounds; round += 1)
        for (const [name, system] of inTurn(round, systems)) {
          progress.step(`${figure}, ${inFlight} in flight, ${asked}, ${name}`);
          found.get(name).push(await measure(program, system, figure, inFlight, asked));
        }
      const row = { figure, inFlight, asked, rounds };
      for (const [name, all] of found) {
        const medianOf = (value) => rounded(median(all.map((one) => one[value])));
        const rates = all.map(({ perSecond }) => perSecond);
        row[name] = Object.fromEntries(Object.keys(all[0]).map((value) => [value, medianOf(value)]));
        row[name].least = rounded(Math.min(...rates));
        row[name].most = rounded(Math.max(...rates));
        drawn.push(rowOf(`core ${figure} rate`, inResults[name], "requests/s", rates, { inFlight, asked }));
      }
      row.ratio = rounded(row.core.perSecond / row.etcd.perSecond);
      rows.push(row);
      console.log(JSON.stringify(row));
    }
  for (const [, { servers }] of systems) for (const server of servers) server.kill();
  return rows;
}

async function measureOnce(room, program, progress) {
  const rows = [];
  for (const part of once) {
    const found = new Map();
    for (let round = 0; round < roundsOnce; round += 1)
      for (const [name, { start }] of inTurn(round, Object.entries({ core, etcd }))) {
        progress.step(`${part}, ${name}`);
        const system = await start(room);
        const loadThis = (figure, inFlight, ms) => load(program, system.connection, figure, inFlight, ms);
        for (const [figure, unit, value] of await parts[part](system, loadThis)) {
          const row = found.get(figure) ?? { figure, unit, core: [], etcd: [] };
          found.set(figure, row);
          row[name].push(value);
        }
        for (const server of system.servers) server.kill();
      }
    for (const { figure, unit, ...values } of found.values()) {
      const row = { figure, unit, rounds: roundsOnce };
      for (const [name, all] of Object.entries(values))
        row[name] = {
          median: rounded(median(all)),
          least: rounded(Math.min(...all)),
          most: rounded(Math.max(...all)),
        };
      row.ratio = rounded(row.core.median / row.etcd.median);
      rows.push(row);
      console.log(JSON.stringify(row));
    }
  }
  return rows;
}

const room = new Room(values.disk);
const cells = figures.flatMap(cellsOf).length;
const progress = new Progress((cells * rounds + once.length * roundsOnce) * 2);
const program = buildLoad(room);
const rows = await measureRates(room, program, progress);
const onceRows = await measureOnce(room, program, progress);
progress.end();
const table = rows.map(({ figure, inFlight, asked, ratio, core: ours, etcd: theirs }) => ({
  figure,
  "in flight": inFlight,
  asked,
  "core/s": ours.perSecond,
  "etcd/s": theirs.perSecond,
  ratio,
  "core p50 µs": ours.p50Us,
  "etcd p50 µs": theirs.p50Us,
  "core CPU µs": ours.serverCpuUs,
  "etcd CPU µs": theirs.serverCpuUs,
  "core cores": ours.cores,
  "etcd cores": theirs.cores,
  "core MiB": ours.residentMiB,
  "etcd MiB": theirs.residentMiB,
}));
const terminal = new Console(process.stderr);
if (table.length > 0) terminal.table(table);
const onceTable = onceRows.map(({ figure, unit, ratio, core: ours, etcd: theirs }) => ({
  figure,
  unit,
  core: ours.median,
  etcd: theirs.median,
  ratio,
}));
if (onceTable.length > 0) terminal.table(onceTable);
const at = new Date().toISOString();
const commit = commitOf();
if (values.save && !isOneCore) {
  // Keep the head of the file, which belongs to the run of `npm run bench -- compare`.
  const head = JSON.parse(readFileSync(latest, "utf8"));
  save(
    latest,
    head,
    drawn.map((row) => ({ ...row, at, commit })),
  );
}
if (values.out !== undefined) {
  const machine = machineOf(values.disk, ["etcd-server"]);
  const all = { at, commit, machine, isOneCore, rows, once: onceRows };
  writeFileSync(values.out, `${JSON.stringify(all, undefined, 1)}\n`);
}
process.exit(0);
