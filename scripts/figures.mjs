import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Writes the table of single operations into the pages that show it, from bench/quick.ndjson: what
 * `npm run bench:quick` printed on a quiet machine. With `--check`: fails if that would change a page.
 */

const root = fileURLToPath(new URL("..", import.meta.url));
const pages = ["README.md", "docs/figures.md"];
const [begin, end] = ["<!-- figures of bench/quick.ndjson: npm run figures -->\n", "<!-- end of figures -->"];

const measured = readFileSync(join(root, "bench/quick.ndjson"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

function value(figure, inFlight) {
  const found = measured.find((one) => one.figure === figure && one.inFlight === inFlight);
  if (found === undefined) throw new Error(`bench/quick.ndjson has no "${figure}"`);
  return found.value;
}

const rounded = (number, digits) => Number(number.toPrecision(digits)).toLocaleString("en-US");

function row(operation) {
  const median = value(`${operation} time, median`, 1);
  const late = value(`${operation} time, 99th percentile`, 1);
  const rate = value(`${operation} rate`, 512);
  const cpu = value(`${operation} CPU, all processes`, 512);
  const single = `median ${rounded(median, 2)} µs, 99 % within ${rounded(late, 2)} µs`;
  const many = `${rounded(rate, 2)} a second, ${rounded(cpu, 2)} µs of CPU each over all four processes`;
  return `| ${operation} | ${single} | ${many} |`;
}

const kilobytes = (side) => (value(`held lease, ${side}`) / 1_000).toPrecision(2);

const table = [
  "| | one at a time | 512 in flight |",
  "|---|---|---|",
  ...["acquire", "renew", "release"].map(row),
  `| memory of a held lease | | ${kilobytes("client")} kB at the client, ${kilobytes("member")} kB at each member |`,
  "",
].join("\n");

for (const page of pages) {
  const text = readFileSync(join(root, page), "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} has no place for the table`);
  const written = text.slice(0, from + begin.length) + table + text.slice(to);
  if (written === text) continue;
  if (process.argv.includes("--check")) {
    process.stderr.write(`the figures of ${page} are not those of bench/quick.ndjson: npm run figures\n`);
    process.exitCode = 1;
  } else writeFileSync(join(root, page), written);
}
