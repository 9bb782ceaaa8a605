import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { charts } from "../bench/report/charts.mjs";
import { digestOf, Measured } from "../bench/report/measured.mjs";

/**
 * Charts of measurements: the content of each, and that the pictures on the pages show the rows in the file.
 */

const root = fileURLToPath(new URL("..", import.meta.url));
const pictureOf = (name: string) => join(root, "docs/pictures", `measured-${name}.svg`);
const invented = Measured.load(join(root, "bench/report/invented.json"));
const measured = Measured.load(join(root, "bench/results/latest.json"));

/** An object of a specification, at any depth. */
type Part = { readonly [name: string]: unknown };
const isPart = (value: unknown): value is Part => typeof value === "object" && value !== null;

/** The values of all properties of this name in a specification. */
function found(name: string, part: unknown): unknown[] {
  if (!isPart(part)) return [];
  const own = name in part ? [part[name]] : [];
  return [...own, ...Object.values(part).flatMap((each) => found(name, each))];
}

/** The titles of all quantitative axes; the empty string for an axis without a title. */
const titlesOf = (specification: unknown) =>
  [...found("x", specification), ...found("y", specification)].filter(isPart).flatMap((channel) => {
    const { type, axis } = channel;
    if (type !== "quantitative" || !isPart(axis)) return [];
    return [typeof axis["title"] === "string" ? axis["title"] : ""];
  });
const quantities = /second|µs|ms\b|bytes|nodes|messages|leases/;

describe.each(charts.map(({ name, of }) => ({ name, of })))("the chart $name", ({ name, of }) => {
  const { rows, spec } = of(invented);
  const { title, ...rest } = spec() as { title: { text: string; subtitle: string[] } };

  test("shows rows, each as a mark with its minimum and maximum", () => {
    expect(rows.length).toBeGreaterThan(1);
    const shown = found("values", rest).flat().filter(isPart);
    for (const { median, min, max } of rows.filter((row: { median: number }) => row.median > 0))
      expect(shown).toContainEqual(expect.objectContaining({ value: median, min, max }));
    const marks = found("mark", rest).map((mark) => (isPart(mark) ? mark["type"] : mark));
    expect(marks).toEqual(expect.arrayContaining(["rule", "point", "text"]));
  });

  test("asks a question, and its axes name units and logarithms", () => {
    expect(title.text).toMatch(/^[A-Z].*\?$/);
    expect(title.subtitle.join(" ")).not.toMatch(/NaN|undefined|Infinity/);
    const axes = titlesOf(rest);
    expect(axes.length).toBeGreaterThan(0);
    expect(axes.filter((text) => !quantities.test(text))).toEqual([]);
    expect(axes.some((text) => text.includes("log scale"))).toBe(found("type", rest).includes("log"));
  });

  test("has the same systems on the same lines in all panels, even where one has no figure", () => {
    const lines = found("y", rest)
      .filter(isPart)
      .filter(({ field }) => field === "system");
    const domains = lines.map(({ scale }) => JSON.stringify(scale));
    expect(new Set(domains).size).toBe(lines.length === 0 ? 0 : 1);
    expect(domains.filter((domain) => domain === undefined || !domain.includes("Leasehold"))).toEqual([]);
  });

  test("on the pages shows the rows in bench/results/latest.json: npm run bench -- report", () => {
    const { rows } = of(measured);
    const file = pictureOf(name);
    const stands = existsSync(file)
      ? /<metadata>rows (\w+)</.exec(readFileSync(file, "utf8"))?.[1]
      : undefined;
    expect(stands).toBe(rows.length === 0 ? undefined : digestOf(rows));
  });

  test("is shown and explained in docs/performance.md, if it was measured", () => {
    const shown = readFileSync(join(root, "docs/performance.md"), "utf8").includes(
      `(pictures/measured-${name}.svg)`,
    );
    expect(shown).toBe(existsSync(pictureOf(name)));
  });
});

test("a chart over nodes has one point of a system for each number of nodes, even after the measuring method has changed", () => {
  const over = measured.rows.filter(({ figure }: { figure: string }) => figure.endsWith("over nodes"));
  const points = over.map((row: Part) => `${row["figure"]}, ${row["system"]}, ${row["nodes"]}`);
  expect(points.length).toBeGreaterThan(0);
  expect(points.filter((point: string, index: number) => points.indexOf(point) !== index)).toEqual([]);
});
