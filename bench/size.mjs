// The cost of a held lease on each ground: writes packages/leasehold/src/cli/commands/size-figures.ts for
// `leasehold size`. Bytes of held leases and processor time of renewals come from bench/results/latest.json.
// This script measures the bytes of a renewal on a separate network, a server's memory without leases, and
// the cost of a cell on a store. Linux, as root.
//   npm run bench -- size
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { open } from "leasehold";
import { startCluster } from "./cluster.mjs";

const self = fileURLToPath(import.meta.url);
const root = fileURLToPath(new URL("..", import.meta.url));
const main = join(root, "packages/leasehold/dist/cli/main.js");

if (process.argv[2] !== "measure") {
  const inside = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", process.execPath, self, "measure"];
  const { status } = spawnSync("unshare", ["--net", ...inside], { stdio: "inherit" });
  process.exit(status ?? 1);
}

const ttlMs = 6_000;
const forMs = 12_000;

/** The bytes that this network has carried. */
const carried = () => Number(/lo:\s*(\d+)/.exec(readFileSync("/proc/net/dev", "utf8"))[1]);

/** Resident memory of this process's largest child. */
function memoryOfServer() {
  const sizes = readdirSync("/proc").flatMap((pid) => {
    try {
      const status = readFileSync(`/proc/${Number(pid)}/status`, "utf8");
      const isChild = Number(/^PPid:\s*(\d+)/m.exec(status)?.[1]) === process.pid;
      return isChild ? [Number(/^VmRSS:\s*(\d+)/m.exec(status)?.[1] ?? 0) * 1_024] : [];
    } catch {
      return [];
    }
  });
  return Math.max(...sizes);
}

/**
 * Bytes of one renewal of each of `count` leases, including all copies. A lease is renewed when a third of
 * its ttl is over.
 */
async function bytesOfRenewals(urls, count) {
  const leases = await open(...urls, { name: "holder" });
  const names = Array.from({ length: count }, (_, index) => `size/${index}`);
  // A few at a time, in case the machine does other work.
  const acquire = async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop())
      await leases.acquire(name, { ttl: ttlMs });
  };
  await Promise.all(Array.from({ length: 32 }, acquire));
  let renewals = 0;
  leases.on("renewed", () => (renewals += 1));
  await sleep(ttlMs / 3);
  const [before, already] = [carried(), renewals];
  await sleep(forMs);
  const bytes = (carried() - before) / (renewals - already);
  await leases.close();
  return Math.round(bytes);
}

const cluster = await startCluster({ ttlMax: `${ttlMs}ms`, maxClockSkew: "100ms", rpcTimeout: "1s" });
const flease = { processBytes: memoryOfServer(), wireBytes: await bytesOfRenewals(cluster.urls, 2_000) };
for (const server of cluster.servers) server.kill();
await sleep(500);

const directory = mkdtempSync(join(tmpdir(), "leasehold-size-"));
const server = spawn(process.execPath, [main, "core", "--data-dir", join(directory, "core")], {
  stdio: "ignore",
});
await sleep(8_000);
const core = {
  processBytes: memoryOfServer(),
  wireBytes: await bytesOfRenewals(["core://127.0.0.1:2379"], 200),
};
server.kill();

const farm = join(directory, "store");
mkdirSync(farm);
const cells = 20;
const stored = await open(`delta+file://${farm}`, { name: "holder" });
await Promise.all(Array.from({ length: cells }, (_, index) => stored.acquire(`size/${index}`)));
const files = readdirSync(farm, { recursive: true }).map((path) => statSync(join(farm, path)));
const cellBytes = Math.round(files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0) / cells);
await stored.close();
rmSync(directory, { recursive: true });

const { at, machine, rows } = JSON.parse(readFileSync(join(root, "bench/results/latest.json"), "utf8"));
function costs(system) {
  const median = (figure) =>
    rows.find((row) => row.figure === figure && row.system === system && (row.inFlight ?? 512) === 512)
      .median;
  return {
    serverBytes: median("held lease, member"),
    clientBytes: median("held lease, client"),
    // The sum of all three servers.
    serverUs: median("renew CPU, servers"),
    clientUs: median("renew CPU, client"),
  };
}
const figures = {
  measured: at.slice(0, 10),
  machine: `${machine.cores} cores of ${machine.processor}, Node ${machine.node}`,
  networkMeasured: new Date().toISOString().slice(0, 10),
  networkMachine: `${cpus().length} cores of ${cpus()[0].model}, Node ${process.version}`,
  flease: { ...costs("leasehold (certificates)"), ...flease },
  core: { ...costs("leasehold core"), ...core },
  delta: { cellBytes },
};
const text = `/** What a held lease costs, as \`npm run bench -- size\` measured it. */
export const figures = ${JSON.stringify(figures, undefined, 2)} as const;
`;
writeFileSync(join(root, "packages/leasehold/src/cli/commands/size-figures.ts"), text);
spawnSync(
  process.execPath,
  [join(root, "node_modules/oxfmt/bin/oxfmt"), "packages/leasehold/src/cli/commands/size-figures.ts"],
  { cwd: root },
);
console.log(text);
process.exit(0);
