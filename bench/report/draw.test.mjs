// Draws every chart from made-up rows. Run by `npm run test:slow -- report`, since drawing needs packages of
// its own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { charts } from "./charts.mjs";
import { draw } from "./draw.mjs";
import { digestOf, Measured } from "./measured.mjs";
import { page } from "./page.mjs";
import { widthPx } from "./style.mjs";

const measured = Measured.load(fileURLToPath(new URL("invented.json", import.meta.url)));
const drawn = [];

for (const { name, of } of charts) {
  test(`${name}: an image with its question, axes with units, and a mark for each row`, async () => {
    const { rows, spec } = of(measured);
    const specification = spec();
    const svg = await draw(specification, digestOf(rows));
    drawn.push(svg);
    assert.match(svg, new RegExp(`<metadata>rows ${digestOf(rows)}</metadata>`));
    assert.ok(svg.includes(`<title>${specification.title.text}</title>`));
    const text = svg.replaceAll(/<[^>]+>/g, "\n");
    assert.match(text, /\((log scale)\)/);
    assert.doesNotMatch(svg, /NaN|undefined|Infinity/);
    assert.equal(text.includes("no figure"), ["memory", "failover"].includes(name));
    const symbols = [...svg.matchAll(/<g class="mark-symbol role-mark[^>]*>(.*?)<\/g>/g)].flatMap(
      ([, marks]) => [...marks.matchAll(/<path /g)],
    );
    const without = rows.filter(({ figure, median }) => figure.endsWith("derived") || median <= 0);
    assert.ok(
      symbols.length >= rows.length - without.length,
      `${symbols.length} marks of ${rows.length} rows`,
    );
    const width = Number(/width="([\d.]+)"/.exec(svg)[1]);
    assert.ok(width > widthPx / 2 && width < widthPx * 1.1, `${width} pixels wide`);
  });
}

test("the report has all charts and all rows, and needs no other file", () => {
  const html = page(measured, drawn);
  assert.equal(html.match(/<figure>/g).length, charts.length);
  assert.equal(html.match(/<tr><td>/g).length, measured.rows.length);
  assert.doesNotMatch(html, /<script|<link|src=|@import/);
});
