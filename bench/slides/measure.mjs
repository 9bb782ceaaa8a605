// Measures the charts of the Flease talk, and puts the rows into the file of results in place of those of the same figures:
// `node bench/slides/measure.mjs [part…]`; without words all.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { measureBusyDisks } from "./busy-disks.mjs";
import { measureOpenFiles, measureZooKeeperSessions } from "./open-files.mjs";
import { measureMembers, measureZooKeeperNodes } from "./over-nodes.mjs";

const parts = {
  nodes: measureMembers,
  "nodes-zookeeper": measureZooKeeperNodes,
  files: measureOpenFiles,
  "files-zookeeper": measureZooKeeperSessions,
  disks: measureBusyDisks,
};
const file = fileURLToPath(new URL("../results/latest.json", import.meta.url));
const words = process.argv.slice(2);

const known = existsSync(file)
  ? JSON.parse(readFileSync(file, "utf8"))
  : { machine: { cores: cpus().length, processor: cpus()[0].model, node: process.version }, rows: [] };
const began = performance.now();
const seconds = () => ((performance.now() - began) / 1_000).toFixed(0);
for (const [name, measure] of Object.entries(parts)) {
  if (words.length > 0 && !words.includes(name)) continue;
  const rows = await measure((text) => process.stderr.write(`${seconds()} s: ${text}\n`));
  const isAnew = (old) => rows.some(({ figure, system }) => figure === old.figure && system === old.system);
  known.rows = [...known.rows.filter((old) => !isAnew(old)), ...rows];
}
const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
const { rows, ...about } = { ...known, at: new Date().toISOString(), commit };
mkdirSync(dirname(file), { recursive: true });
const head = JSON.stringify(about, undefined, 2).slice(0, -2);
writeFileSync(
  file,
  `${head},\n  "rows": [\n${rows.map((row) => `    ${JSON.stringify(row)}`).join(",\n")}\n  ]\n}\n`,
);
