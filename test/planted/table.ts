import { parseArgs } from "node:util";
import { noFaults } from "../../src/flease/faults.js";
import { withFaults } from "../../src/flease/planted-faults.js";
import { simulateMany } from "../../src/sim/run.js";
import { explored } from "./explored.js";
import { find, search } from "./find.js";
import { simulated } from "./simulated.js";

/**
 * `npm run sim:planted`: plants every known mistake and looks who catches it. Exits with 1 unless each one is caught,
 * and unless none is "caught" that was not planted.
 */
interface Row {
  readonly mistake: string;
  readonly checker: string;
  readonly by: "random runs" | "explorer";
  readonly caught: boolean;
  /** How many runs, or states, it took. */
  readonly after: string;
  /** Of the run that failed, with its clock mode. */
  readonly seed: string;
  readonly seconds: number;
}

const titles = ["MISTAKE", "CHECKER", "CAUGHT BY", "AFTER", "SEED", "SECONDS"];

const { values } = parseArgs({
  options: { output: { type: "string", short: "o" }, only: { type: "string" } },
});
const wanted = (name: string) => values.only === undefined || name.startsWith(values.only);

const timed = (body: () => Omit<Row, "seconds">): Row => {
  const startMs = performance.now();
  const row = body();
  const seconds = Number(((performance.now() - startMs) / 1_000).toFixed(1));
  process.stderr.write(`${row.caught ? "caught" : "MISSED"}  ${row.mistake}  (${seconds} s)\n`);
  return { ...row, seconds };
};

function bySimulation(): Row[] {
  return simulated
    .filter(({ name }) => wanted(name))
    .map((mistake) =>
      timed(() => {
        const { counters, failed } = search(mistake);
        const seed = failed === undefined ? "" : `${failed.plan.seed} ${mistake.mode}`;
        const caught = failed?.violation?.invariant === mistake.breaks;
        const after = `${counters.runs} runs`;
        return { mistake: mistake.name, checker: mistake.breaks, by: "random runs", caught, after, seed };
      }),
    );
}

function byExploration(): Row[] {
  return explored
    .filter(({ name }) => wanted(name))
    .map((mistake) =>
      timed(() => {
        const { states, finding } = find(mistake);
        const caught = finding?.invariant === mistake.breaks;
        const after = `${states} states`;
        return { mistake: mistake.name, checker: mistake.breaks, by: "explorer", caught, after, seed: "" };
      }),
    );
}

/** Runs in fair weather, and how much slower than usual a released resource may change hands at most. */
const fairRuns = 20;
const slowdownMax = 1.4;

/** P44 breaks no invariant: a resource that was released changes hands far too slowly. */
function byHandOver(): Row[] {
  const name = "P44: a released lease blocks readers";
  if (!wanted(name)) return [];
  const meanMs = (releasedLeaseBlocksReader: boolean) => {
    const { counters } = withFaults({ releasedLeaseBlocksReader }, () =>
      simulateMany({ firstSeed: 1, modes: ["c"], fairWeather: true, goOn: (runs) => runs < fairRuns }),
    );
    return counters.handOverMs / counters.handOvers;
  };
  return [
    timed(() => {
      const caught = meanMs(true) > slowdownMax * meanMs(false);
      const after = `${fairRuns} runs`;
      return { mistake: name, checker: "hand-over", by: "random runs", caught, after, seed: "1 c" };
    }),
  ];
}

function printTable(rows: readonly Row[]): void {
  const cells = rows.map((row) => [
    row.mistake,
    row.checker,
    row.caught ? row.by : "NOBODY",
    row.after,
    row.seed,
    row.seconds.toFixed(1),
  ]);
  const widths = titles.map((title, column) =>
    Math.max(title.length, ...cells.map((line) => line[column]!.length)),
  );
  for (const line of [titles, ...cells])
    process.stdout.write(
      `${line
        .map((text, column) => text.padEnd(widths[column]!))
        .join("  ")
        .trimEnd()}\n`,
    );
}

/** Switches that no row of the table turns: none may be forgotten. `netGOff` only ever takes the mask off others. */
function neverPlanted(): string[] {
  const planted = new Set(["netGOff", "releasedLeaseBlocksReader"]);
  for (const { faults = {} } of [...simulated, ...explored])
    for (const name of Object.keys(faults)) planted.add(name);
  return Object.keys(noFaults).filter((name) => !planted.has(name));
}

const rows = [...bySimulation(), ...byHandOver(), ...byExploration()];
const missed = [...rows.filter(({ caught }) => !caught).map(({ mistake }) => mistake), ...neverPlanted()];
if (values.output === "json") process.stdout.write(`${JSON.stringify({ rows, missed })}\n`);
else printTable(rows);
process.stderr.write(
  missed.length === 0 ? `all ${rows.length} are caught\n` : `MISSED: ${missed.join("; ")}\n`,
);
process.exit(missed.length === 0 && rows.length > 0 ? 0 : 1);
