// Compares Leasehold with its alternatives: npm run bench -- compare --help
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parts } from "./figures.mjs";
import { commitOf, machineOf } from "./machine.mjs";
import { Progress } from "./progress.mjs";
import { latest, rowOf, save } from "./results.mjs";
import { debianVersion, Room } from "./room.mjs";
import { Running } from "./running.mjs";
import { slides } from "./slides/index.mjs";
import { load, systems } from "./systems/index.mjs";

const names = systems.map(({ name }) => name);

const help = `npm run bench -- compare [options]

Measures systems that give out leases side by side on this machine: every round measures each of them, one after
the other. Starts their servers itself, in a temporary directory, and ends them. All of it takes some twenty minutes
and wants a quiet machine. Writes medians, least and greatest of the rounds.

  --systems a,b   of: ${names.join(", ")}
  --figures a,b   of: ${Object.keys(parts).join(", ")};
                  and of the four charts of the Flease talk: ${Object.keys(slides).join(", ")}
  --rounds n      5 unless given
  --output file   ${relative(process.cwd(), latest)} unless given; rows that are not measured now stay in it
  --dir folder    whose disk the servers write to; ${tmpdir()} unless given
  --help
`;

function refuse(text) {
  process.stderr.write(`${text}\n\n${help}`);
  process.exit(2);
}

function readOptions() {
  const string = { type: "string" };
  const options = {
    systems: string,
    figures: string,
    rounds: string,
    output: string,
    dir: string,
    help: { type: "boolean" },
  };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    return refuse(error.message);
  }
}

function chosen(text, all, what) {
  if (text === undefined) return all;
  const wanted = text.split(",").map((one) => one.trim());
  const unknown = wanted.find((one) => !all.includes(one));
  if (unknown !== undefined) refuse(`no ${what} "${unknown}"`);
  return all.filter((one) => wanted.includes(one));
}

/** The clients are a separate package, so that only those who run the comparison install them. */
function installClients() {
  const folder = fileURLToPath(new URL("systems/", import.meta.url));
  const [wanted, there] = [`${folder}package-lock.json`, `${folder}node_modules/.package-lock.json`];
  if (existsSync(there) && statSync(there).mtimeMs >= statSync(wanted).mtimeMs) return;
  process.stderr.write("installing the clients of the other systems in bench/systems\n");
  const args = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const { status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) process.exit(1);
}

const options = readOptions();
if (options.help) {
  process.stdout.write(help);
  process.exit();
}
const rounds = Number(options.rounds ?? 5);
if (!Number.isInteger(rounds) || rounds < 1) refuse("--rounds is a whole number from 1");
const wantedSystems = chosen(options.systems, names, "system");
const wantedFigures = chosen(options.figures, [...Object.keys(parts), ...Object.keys(slides)], "figure");
const wantedParts = Object.keys(parts).filter((name) => wantedFigures.includes(name));
const wantedSlides = Object.keys(slides).filter((name) => wantedFigures.includes(name));
const output = options.output ?? latest;

installClients();
const at = new Date().toISOString();
const room = new Room(options.dir ?? tmpdir());
/** Figures that could not be measured, with the reasons. */
const faults = [];
const fault = (text) => {
  faults.push(text);
  progress.say(text);
};
const progress = new Progress(
  wantedSystems.length *
    wantedParts.reduce(
      (sum, part) => sum + Math.min(rounds, parts[part].roundsMax) + (parts[part].warmsUp ? 1 : 0),
      0,
    ),
);

/** Whether any of these Debian packages is missing; prints which. */
function lacks(what, wanted) {
  const missing = wanted.filter((name) => debianVersion(name) === undefined);
  if (missing.length > 0)
    fault(`${what} is left out: it needs Debian's package ${missing.join(", ")} (apt-get install)`);
  return missing.length > 0;
}

const packages = [];
/** Starts all requested systems that are available. */
async function startAll() {
  const all = await Promise.all(
    systems
      .filter(({ name }) => wantedSystems.includes(name))
      .map(async (system) => {
        const wanted = (await load(system.module)).packages;
        if (lacks(system.name, wanted)) return [];
        packages.push(...wanted);
        try {
          return [{ name: system.name, running: await Running.start(system, room) }];
        } catch (error) {
          fault(`${system.name} is left out, it did not start: ${error.stack ?? error}`);
          return [];
        }
      }),
  );
  return all.flat();
}

/** These use servers of their own, which end before those of the other figures start. */
async function measureSlides() {
  for (const name of wantedSlides) {
    const { packages: wanted, measure } = slides[name];
    if (lacks(name, wanted)) continue;
    process.stderr.write(`${name}\n`);
    try {
      const rows = await measure(room, (text) => process.stderr.write(`  ${text}\n`));
      save(output, { at, commit: commitOf(), machine: machineOf(room.folder("disk"), wanted) }, rows);
    } catch (error) {
      fault(`${name}: ${error.stack ?? error}`);
    }
  }
}

await measureSlides();
if (wantedParts.length > 0)
  process.stderr.write("starting servers; Leasehold's members wait ten seconds first\n");
const started = wantedParts.length > 0 ? await startAll() : [];
const machine = machineOf(room.folder("disk"), packages);

/** Values by row: { figure, system, unit, parameters, values }. */
const collected = new Map();

function collect(system, measured) {
  for (const [figure, unit, value, parameters] of measured) {
    const key = JSON.stringify([figure, system, parameters.inFlight]);
    const row = collected.get(key) ?? { figure, system, unit, parameters, values: [] };
    row.values.push(value);
    collected.set(key, row);
  }
}

function saveAll() {
  const rows = [...collected.values()].map(({ figure, system, unit, values, parameters }) =>
    rowOf(figure, system, unit, values, parameters),
  );
  if (rows.length > 0) save(output, { at, commit: commitOf(), machine }, rows);
}

/** A system with this many failures is skipped: each failure may take a minute. */
const failuresMax = 2;
const failures = new Map();

/** One round of one system. A failure costs this system this round, and affects no other. */
async function measureOne(part, { name, running }, round) {
  const { needs, measure } = parts[part];
  if (!needs.every((ability) => running.abilities.includes(ability))) return;
  if (failures.get(name) >= failuresMax) return;
  const how = { round };
  try {
    const measured = await measure(running, how);
    if (round >= 0) collect(name, measured);
  } catch (error) {
    fault(`${name}, ${part}: ${error.stack ?? error}`);
    failures.set(name, (failures.get(name) ?? 0) + 1);
    await running.connect().catch((again) => fault(`${name}: ${again}`));
  }
}

for (const part of wantedParts) {
  const { roundsMax, warmsUp } = parts[part];
  for (let round = warmsUp ? -1 : 0; round < Math.min(rounds, roundsMax); round += 1) {
    for (const one of started) {
      progress.step(`${part}, ${round < 0 ? "warming up" : `round ${round + 1}`}, ${one.name}`);
      await measureOne(part, one, round);
    }
    saveAll();
  }
}
progress.end();
process.stderr.write(`written to ${relative(process.cwd(), output)}\n`);
if (faults.length > 0) process.stderr.write(`not all could be measured:\n${faults.join("\n")}\n`);
process.exit(faults.length > 0 ? 1 : 0);
