// What a run of the benchmark has measured: rows of one JSON file, picked by their figure, system and parameters.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export class Measured {
  constructor({ at, commit, machine, rows }) {
    this.at = at;
    this.commit = commit;
    this.machine = machine;
    this.rows = rows;
  }

  static load(file) {
    return new Measured(JSON.parse(readFileSync(file, "utf8")));
  }

  /** Rows that have all these values. */
  pick(wanted) {
    const entries = Object.entries(wanted);
    return this.rows.filter((row) => entries.every(([name, value]) => row[name] === value));
  }
}

/** Stands in each chart, so that a test can tell whether it shows these rows. When they were measured does not matter. */
export function digestOf(rows) {
  const texts = rows.map(({ at: _at, commit: _commit, ...row }) =>
    JSON.stringify(Object.entries(row).toSorted(([one], [other]) => (one < other ? -1 : 1))),
  );
  return createHash("sha256").update(texts.toSorted().join("\n")).digest("hex").slice(0, 16);
}
