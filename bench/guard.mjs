// Fails when Leasehold has become slower, compared with the bare exchange, than at the committed baseline.
// Both are measured in turn, so that the machine and its other work affect both alike.
//   npm run bench -- guard           compares with bench/guard.json
//   npm run bench -- guard --write   writes it: on a quiet machine, after an intended change
// The ratios depend on the number of processors, which the processes share, and on the version of Node. On a
// machine unlike the baseline's, they are printed but not judged.
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { parts } from "./figures.mjs";
import { commitOf } from "./machine.mjs";
import { Room } from "./room.mjs";
import { Running } from "./running.mjs";
import { systems } from "./systems/index.mjs";

const baselineFile = fileURLToPath(new URL("guard.json", import.meta.url));
const rounds = 5;
/** A ratio fails if it is too low in each of the repeats. A busy machine can affect one or two of them. */
const repeatsMax = 2;
/** The greatest accepted loss, as a share of the baseline. */
const lossMax = 0.25;

/**
 * Leasehold's figure, and the bare exchange's figure that it is divided by. Rates should be high, costs low.
 */
const guarded = [
  { figure: "acquire rate", by: "acquire rate", inFlight: 512 },
  { figure: "acquire rate", by: "acquire rate", inFlight: 1 },
  { figure: "renew rate", by: "acquire rate", inFlight: 512 },
  { figure: "acquire and release rate", by: "acquire and release rate", inFlight: 512 },
  { figure: "acquire CPU, all processes", by: "acquire CPU, all processes", inFlight: 512 },
  { figure: "acquire CPU, all processes", by: "acquire CPU, all processes", inFlight: 1 },
];
const titleOf = ({ figure, inFlight }) => `${figure}, ${inFlight} in flight`;
const isCost = ({ figure }) => figure.includes("CPU");

const machine = { processors: availableParallelism(), node: process.versions.node.split(".")[0] };

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const say = (text) => process.stderr.write(`${text}\n`);

const room = new Room(tmpdir());
const start = (wanted) =>
  Running.start(
    systems.find(({ name }) => name === wanted),
    room,
  );
const [bare, leasehold] = await Promise.all(["bare exchange", "leasehold"].map(start));

async function oneRound(running) {
  const rows = [];
  for (const part of ["throughput", "latency"])
    rows.push(...(await parts[part].measure(running, { needsTimes: false })));
  return (wanted, width) =>
    rows.find(([figure, , , { inFlight }]) => figure === wanted && inFlight === width)[2];
}

/** Ratios by title, as medians of the rounds. */
async function measure() {
  const ratios = new Map(guarded.map((one) => [titleOf(one), []]));
  for (let round = 0; round < rounds; round += 1) {
    const [yardstick, own] = [await oneRound(bare), await oneRound(leasehold)];
    for (const one of guarded) {
      ratios.get(titleOf(one)).push(own(one.figure, one.inFlight) / yardstick(one.by, one.inFlight));
    }
    say(`round ${round + 1} of ${rounds}`);
  }
  return Object.fromEntries(
    [...ratios].map(([title, values]) => [title, Number(median(values).toPrecision(3))]),
  );
}

/** Prints each ratio beside the baseline's. Returns those that fail. */
function compare(ratios, baseline) {
  const lost = new Set();
  for (const one of guarded) {
    const [now, then] = [ratios[titleOf(one)], baseline[titleOf(one)]];
    // A gain above 1 is an improvement.
    const gain = isCost(one) ? then / now : now / then;
    const isLost = gain < 1 - lossMax;
    if (isLost) lost.add(titleOf(one));
    const verdict = isLost ? "LOST" : gain > 1 / (1 - lossMax) ? "better: write a new baseline" : "as before";
    process.stdout.write(`${titleOf(one)}: ${now} × the bare exchange, baseline ${then}: ${verdict}\n`);
  }
  return lost;
}

say("warming up");
for (const running of [bare, leasehold]) await oneRound(running);
const ratios = await measure();
if (process.argv.includes("--write")) {
  const text = { at: new Date().toISOString(), commit: commitOf(), machine, ratios };
  writeFileSync(baselineFile, `${JSON.stringify(text, undefined, 2)}\n`);
  process.stdout.write(`${JSON.stringify(ratios, undefined, 2)}\n`);
  process.exit();
}
const { ratios: baseline, machine: then } = JSON.parse(readFileSync(baselineFile, "utf8"));
let lost = [...compare(ratios, baseline)];
if (JSON.stringify(machine) !== JSON.stringify(then)) {
  say(`NOT judged: the baseline is of ${JSON.stringify(then)}, this machine is ${JSON.stringify(machine)}`);
  process.exit();
}
for (let repeat = 1; lost.length > 0 && repeat <= repeatsMax; repeat += 1) {
  say("once more, as the machine may have been at fault");
  const again = compare(await measure(), baseline);
  lost = lost.filter((title) => again.has(title));
}
if (lost.length > 0) say(`lost each time: ${lost.join("; ")}`);
process.exit(lost.length > 0 ? 1 : 0);
