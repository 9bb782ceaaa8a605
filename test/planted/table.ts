import { cored, searchCore } from "./cored.js";
import { explored } from "./explored.js";
import { filed, searchFiles } from "./filed.js";
import { find, search } from "./find.js";
import { hostiles, searchHostile } from "./hostile.js";
import { gridded, searchGrid } from "./gridded.js";
import { fairRuns, handOverMs, slowdownMax, slowHandOvers } from "./hand-over.js";
import { readOptions, refuse } from "./options.js";
import { simulated } from "./simulated.js";
import { searchStored, stored } from "./stored.js";

/**
 * `npm run planted -- sim`: plants every known mistake and checks that it is caught. Exits with 0 only if all
 * are caught.
 */
interface Row {
  readonly mistake: string;
  readonly checker: string;
  readonly by: "random runs" | "explorer";
  readonly caught: boolean;
  /** The number of runs, or of states, until it was caught. */
  readonly after: string;
  /** The seed of the run that failed, with its clock mode. */
  readonly seed: string;
  readonly seconds: number;
}

const hostileRunsMax = 20;

const titles = ["MISTAKE", "CHECKER", "CAUGHT BY", "AFTER", "SEED", "SECONDS"];

const { values, json } = readOptions({ only: { type: "string" } });
const wanted = (name: string) => values.only === undefined || name.startsWith(values.only);

const timed = async (body: () => Promise<Omit<Row, "seconds">>): Promise<Row> => {
  const startMs = performance.now();
  const row = await body();
  const seconds = Number(((performance.now() - startMs) / 1_000).toFixed(1));
  process.stderr.write(`${row.caught ? "caught" : "MISSED"}  ${row.mistake}  (${seconds} s)\n`);
  return { ...row, seconds };
};

async function bySimulation(): Promise<Row[]> {
  const found: Row[] = [];
  for (const mistake of simulated.filter(({ name }) => wanted(name))) {
    const { name, mode, breaks } = mistake;
    const look = async () => {
      const { counters, failed } = await search(mistake);
      const seed = failed === undefined ? "" : `${failed.plan.seed} ${mode}`;
      const caught = failed?.violation?.invariant === breaks;
      const after = `${counters.runs} runs`;
      return { mistake: name, checker: breaks, by: "random runs", caught, after, seed } as const;
    };
    found.push(await timed(look));
  }
  return found;
}

async function byExploration(): Promise<Row[]> {
  const found: Row[] = [];
  for (const mistake of explored.filter(({ name }) => wanted(name))) {
    const { name, breaks } = mistake;
    const look = async () => {
      const { states, finding } = find(mistake);
      const caught = finding?.invariant === breaks;
      const after = `${states} states`;
      return { mistake: name, checker: breaks, by: "explorer", caught, after, seed: "" } as const;
    };
    found.push(await timed(look));
  }
  return found;
}

/** Mistakes that break no invariant: a released resource changes hands far too slowly. */
async function byHandOver(): Promise<Row[]> {
  const found: Row[] = [];
  for (const mistake of slowHandOvers.filter(({ name }) => wanted(name))) {
    const look = async () => {
      const caught = (await handOverMs(mistake, true)) > slowdownMax * (await handOverMs(mistake, false));
      const after = `${fairRuns} runs`;
      return {
        mistake: mistake.name,
        checker: "hand-over",
        by: "random runs",
        caught,
        after,
        seed: "1 c",
      } as const;
    };
    found.push(await timed(look));
  }
  return found;
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

async function onStorage(): Promise<Row[]> {
  const found: Row[] = [];
  for (const mistake of stored.filter(({ name }) => wanted(name))) {
    const { name, breaks, ground } = mistake;
    const look = async () => {
      const { counters, failed } = await searchStored(mistake);
      const seed = failed === undefined ? "" : `${failed.plan.seed} ${ground}`;
      const caught = failed?.violation?.invariant === breaks;
      const after = `${counters.runs} runs`;
      return { mistake: name, checker: breaks, by: "random runs", caught, after, seed } as const;
    };
    found.push(await timed(look));
  }
  return found;
}

async function onGrid(): Promise<Row[]> {
  const found: Row[] = [];
  for (const mistake of gridded.filter(({ name }) => wanted(name))) {
    const { name, breaks } = mistake;
    const look = async () => {
      const { runs, failed } = await searchGrid(mistake);
      const seed = failed === undefined ? "" : `${failed.seed} grid`;
      const caught = failed?.violation?.invariant === breaks;
      return {
        mistake: name,
        checker: breaks,
        by: "random runs",
        caught,
        after: `${runs} runs`,
        seed,
      } as const;
    };
    found.push(await timed(look));
  }
  return found;
}

async function onFiles(): Promise<Row[]> {
  const found: Row[] = [];
  for (const mistake of filed.filter(({ name }) => wanted(name))) {
    const { name, breaks } = mistake;
    const look = async () => {
      const { counters, failed } = await searchFiles(mistake);
      const seed = failed === undefined ? "" : `${failed.plan.seed} files`;
      const caught = failed?.violation?.invariant === breaks;
      const after = `${counters.runs} runs`;
      return { mistake: name, checker: breaks, by: "random runs", caught, after, seed } as const;
    };
    found.push(await timed(look));
  }
  return found;
}

async function onCore(): Promise<Row[]> {
  const found: Row[] = [];
  for (const mistake of cored.filter(({ name }) => wanted(name))) {
    const { name, breaks } = mistake;
    const look = async () => {
      const { counters, failed } = await searchCore(mistake);
      const seed = failed === undefined ? "" : `${failed.plan.seed} core`;
      const caught = failed?.violation?.invariant === breaks;
      const after = `${counters.runs} runs`;
      return { mistake: name, checker: breaks, by: "random runs", caught, after, seed } as const;
    };
    found.push(await timed(look));
  }
  return found;
}

/** Mistakes tried on a real server: they are caught if a well-behaved client is affected. */
async function byHostileClients(): Promise<Row[]> {
  const found: Row[] = [];
  for (const { name, faults } of hostiles.filter((mistake) => wanted(mistake.name))) {
    const look = async () => {
      const { failed, runs } = await searchHostile(faults, (count) => count < hostileRunsMax);
      const caught = failed !== undefined;
      const seed = failed === undefined ? "" : `${failed.seed} hostile`;
      const after = `${runs} runs`;
      return { mistake: name, checker: "bystander", by: "random runs", caught, after, seed } as const;
    };
    found.push(await timed(look));
  }
  return found;
}

const rows = [
  ...(await bySimulation()),
  ...(await onStorage()),
  ...(await onGrid()),
  ...(await onFiles()),
  ...(await onCore()),
  ...(await byHostileClients()),
  ...(await byHandOver()),
  ...(await byExploration()),
];
if (rows.length === 0) refuse(`--only: no mistake's name begins with "${values.only}"`);
const missed = rows.filter(({ caught }) => !caught).map(({ mistake }) => mistake);
if (json) process.stdout.write(`${JSON.stringify({ rows, missed })}\n`);
else printTable(rows);
process.stderr.write(
  missed.length === 0 ? `all ${rows.length} are caught\n` : `MISSED: ${missed.join("; ")}\n`,
);
process.exit(missed.length === 0 ? 0 : 1);
