// Draws all charts and the report from one file of rows: `node bench/report/report.mjs [FILE] [FOLDER OF
// PICTURES] [REPORT]`.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { charts } from "./charts.mjs";
import { draw } from "./draw.mjs";
import { digestOf, Measured } from "./measured.mjs";
import { page } from "./page.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const [
  file = at("../results/latest.json"),
  pictures = at("../../docs/pictures"),
  report = at("../results/report.html"),
] = process.argv.slice(2);

const measured = Measured.load(file);
mkdirSync(pictures, { recursive: true });
const drawn = [];
for (const { name, of } of charts) {
  const { rows, spec } = of(measured);
  if (rows.length === 0) {
    process.stderr.write(`${name}: nothing of it was measured, so its picture stays as it is\n`);
    continue;
  }
  const svg = await draw(spec(), digestOf(rows));
  writeFileSync(join(pictures, `measured-${name}.svg`), svg);
  drawn.push(svg);
}
writeFileSync(report, page(measured, drawn));
process.stderr.write(`${drawn.length} charts in ${pictures}, the report is ${report}\n`);
