import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Updates the table that compares the systems, in the page that contains it, from bench/results/latest.json,
 * which `npm run bench -- compare` writes. With `--check`: fails if that would change a page.
 */

const root = fileURLToPath(new URL("..", import.meta.url));
const source = "bench/results/latest.json";
const pages = ["docs/performance.md"];
const [begin, end] = [
  `<!-- figures of ${source}: npm run generate -- figures -->\n`,
  "<!-- end of figures -->",
];

const { at, commit, machine, rows } = JSON.parse(readFileSync(join(root, source), "utf8"));

/** The names in the file, and those in the table. */
const systems = {
  leasehold: "Leasehold",
  "bare exchange": "bare exchange",
  redlock: "Redlock",
  etcd: "etcd",
  zookeeper: "ZooKeeper",
};

/** To two digits, or `–` if the system has no such figure. */
function value(system, figure, inFlight) {
  const found = rows.find(
    (row) => row.system === system && row.figure === figure && row.inFlight === inFlight,
  );
  return found === undefined ? "–" : Number(found.median.toPrecision(2)).toLocaleString("en-US");
}

/** A row whose cells have one or two values. */
const row = (title, ...figures) =>
  `| ${[title, ...Object.keys(systems).map((system) => figures.map((of) => value(system, ...of)).join(" / "))].join(" | ")} |`;

const cpu = "acquire CPU, all processes";
const table = [
  `| | ${Object.values(systems).join(" | ")} |`,
  `|---${"|---".repeat(Object.keys(systems).length)}|`,
  row("acquisitions a second, 512 in flight", ["acquire rate", 512]),
  row("one at a time, µs: median / 99 %", ["acquire time, median", 1], ["acquire time, 99th percentile", 1]),
  row("CPU µs each, all processes: 512 in flight / one at a time", [cpu, 512], [cpu, 1]),
  row("renewals a second, 512 in flight", ["renew rate", 512]),
  row("acquired and released, pairs a second, 512 in flight", ["acquire and release rate", 512]),
  row("bytes of a held lease: client / each server", ["held lease, client"], ["held lease, member"]),
  row("release until the next waiter has it, ms", ["hand-over"]),
  row("a server killed: longest time without an acquisition, ms", ["failover gap", 64]),
  "",
  `Measured on ${at.slice(0, 10)}, commit ${commit}, ${machine.cores} cores (${machine.processor}), Node ${machine.node?.slice(1)}.`,
  "",
].join("\n");

for (const page of pages) {
  const text = readFileSync(join(root, page), "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} has no place for the table`);
  const written = text.slice(0, from + begin.length) + table + text.slice(to);
  if (written === text) continue;
  if (process.argv.includes("--check")) {
    process.stderr.write(`the figures of ${page} are not those of ${source}: npm run generate -- figures\n`);
    process.exitCode = 1;
  } else writeFileSync(join(root, page), written);
}
