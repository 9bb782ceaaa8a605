import { withFaults } from "./switches.js";
import { noBounds } from "../../packages/sim/src/explorer/bounds.js";
import { FleaseModel, fleaseWorld } from "../../packages/sim/src/explorer/flease-model.js";
import { PublishedModel } from "../../packages/sim/src/explorer/published.js";
import { explore } from "../../packages/sim/src/explorer/search.js";
import type { Exploration, Progress } from "../../packages/sim/src/explorer/search.js";
import { readOptions, refuse } from "./options.js";
import { nightWorlds, worlds } from "./worlds.js";

/**
 * `npm run explore [-- --night] [--states-max N] [--only TEXT] [-o json]`: visits every state of small
 * worlds. The first world has the algorithms as published, in which it must find the two holders of F1. Exits
 * with 0 only if it finds those and nothing else.
 */
const { values, json } = readOptions({
  night: { type: "boolean", default: false },
  "states-max": { type: "string" },
  only: { type: "string", default: "" },
});

interface Row {
  readonly name: string;
  readonly expected: "two holders" | "nothing";
  readonly seconds: number;
  readonly exploration: Exploration;
}

const statesMax = Number(values["states-max"] ?? Infinity);
if (!(statesMax >= 1)) refuse(`--states-max: a number, 1 or more, and not "${values["states-max"]}"`);
const wanted = (values.night ? nightWorlds : worlds).filter(({ name }) => name.includes(values.only));
if (wanted.length === 0) refuse(`--only: no world has "${values.only}" in its name`);

/** Interval between progress lines, ms. */
const progressEveryMs = 5_000;

function timed(
  name: string,
  expected: Row["expected"],
  body: (tell: (p: Progress) => boolean) => Exploration,
): Row {
  const startMs = performance.now();
  let toldMs = startMs;
  process.stderr.write(`${name} …\n`);
  const exploration = body(({ states, depth, waiting }) => {
    const nowMs = performance.now();
    if (nowMs - toldMs < progressEveryMs) return true;
    toldMs = nowMs;
    process.stderr.write(`  ${states} states, depth ${depth}, ${waiting} waiting\n`);
    return true;
  });
  const seconds = Number(((performance.now() - startMs) / 1_000).toFixed(1));
  return { name, expected, seconds, exploration };
}

function published(): Row {
  return timed("the four algorithms as published, ε = 0, a crash", "two holders", (onProgress) => {
    const bounds = { ...noBounds, clockDifferenceMax: 0, timeMax: 1, crashes: 1, checkGuards: false };
    return explore(new PublishedModel({ skew: 0, ttlMax: 1 }), { bounds, statesMax, onProgress });
  });
}

function ours(): Row[] {
  return wanted.map(({ name, faults, world, bounds }) =>
    timed(name, "nothing", (onProgress) => {
      const checkGuards = faults["netGOff"] !== true;
      return withFaults(faults, () =>
        explore(new FleaseModel(fleaseWorld(world)), {
          bounds: { ...noBounds, checkGuards, ...bounds },
          statesMax,
          onProgress,
        }),
      );
    }),
  );
}

function print({ name, expected, seconds, exploration }: Row): void {
  const { states, transitions, depth, complete, finding } = exploration;
  const end =
    finding === undefined ? (complete ? "nothing wrong in any" : "nothing wrong, not all seen") : "";
  process.stdout.write(
    `${name}\n  ${states} states, ${transitions} steps, depth ${depth}, ${seconds} s${end && `: ${end}`}\n`,
  );
  if (finding === undefined && expected !== "nothing")
    process.stdout.write(`  NOT FOUND: ${expected}, which are there\n`);
  if (finding === undefined) return;
  process.stdout.write(`  ${finding.invariant}: ${finding.text}, in ${finding.steps.length} steps\n`);
  for (const [index, step] of finding.steps.entries())
    process.stdout.write(`  ${String(index + 1).padStart(4)}  ${step}\n`);
}

const rows = [published(), ...ours()];
const asExpected = rows.every(
  ({ expected, exploration }) => (exploration.finding?.invariant === "I1") === (expected === "two holders"),
);
const clean = rows.every(
  ({ expected, exploration }) => expected !== "nothing" || exploration.finding === undefined,
);
if (json) process.stdout.write(`${JSON.stringify({ rows, ok: asExpected && clean })}\n`);
else for (const row of rows) print(row);
process.exit(asExpected && clean ? 0 : 1);
