// The file of results: { at, commit, machine, rows }, one row for each figure of a system.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

export const latest = fileURLToPath(new URL("results/latest.json", import.meta.url));

const rounded = (value) => Number(value.toPrecision(4));

/** The median, least and greatest of the rounds' values. `more` are the row's parameters. */
export function rowOf(figure, system, unit, values, more = {}) {
  const sorted = values.toSorted((a, b) => a - b);
  const [min, median, max] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)].map(rounded);
  return { figure, system, unit, ...more, median, min, max, rounds: values.length };
}

const sameFigure = (a) => (b) =>
  a.figure === b.figure && a.system === b.system && a.inFlight === b.inFlight && a.asked === b.asked;

/**
 * Writes the results of a run. The file keeps rows that this run has not measured, each with the time and
 * commit of its own run, so that a part can be measured again.
 */
export function save(path, { at, commit, machine }, rows) {
  const before = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { rows: [] };
  const kept = before.rows
    .filter((old) => !rows.some(sameFigure(old)))
    .map((row) => ({ ...row, at: row.at ?? before.at, commit: row.commit ?? before.commit }));
  const lines = [...rows, ...kept].map((row) => `    ${JSON.stringify(row)}`);
  const head = JSON.stringify({ at, commit, machine }, undefined, 2).slice(0, -2);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${head},\n  "rows": [\n${lines.join(",\n")}\n  ]\n}\n`);
}
