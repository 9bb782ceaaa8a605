// The results of a benchmark run: rows of one JSON file, selected by figure, system and parameters.
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

/**
 * Each chart contains this digest, so that a test can check that it shows these rows. The times of
 * measurement do not affect it.
 */
export function digestOf(rows) {
  const texts = rows.map(({ at: _at, commit: _commit, ...row }) =>
    JSON.stringify(Object.entries(row).toSorted(([one], [other]) => (one < other ? -1 : 1))),
  );
  return createHash("sha256").update(texts.toSorted().join("\n")).digest("hex").slice(0, 16);
}
