import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { golden } from "./scenarios/golden.js";
import { formatScript, idleCommands, parseScript, runScript } from "./scenarios/flease-runner/script.js";

/**
 * Golden scripts: each file in `test/scenarios/flease` is a list of commands, followed by their output. The
 * protocol's real acceptors and proposers run them. `UPDATE_SCRIPTS=1 npx vitest run
 * test/flease-scenarios.test.ts` writes the printed parts anew. It leaves the outcomes alone, which are
 * stated in the header of each file and here.
 */
const directory = fileURLToPath(new URL("./scenarios/flease/", import.meta.url));
const names = readdirSync(directory).sort();

/** The bad executions: for each file, the expected outcome without the repair. */
const badExecutions = {
  "F01-forgotten-promise.txt": "two holders",
  "F02-short-recovery-wait.txt": "two holders",
  "F03-intransitive-ballots.txt": "two holders",
  "F04-two-clock-readings.txt": "two holders",
  "F13-repeated-incarnation.txt": "two holders",
  "F15-acks-counted-twice.txt": "two holders",
  "F17-starved-holder.txt": "no holder",
  "F18-too-long-lease.txt": "two holders",
};

const read = (name: string) => readFileSync(directory + name, "utf8");

test.each(names)("%s", (name) => {
  const script = parseScript(read(name));
  const runs = script.variants.map((variant) => runScript(script, variant));
  const outcomes = runs.map((run, index) => `${script.variants[index]!.name}: ${run.outcome}`);
  expect(outcomes).toEqual(script.variants.map((variant) => `${variant.name}: ${variant.expected}`));
  expect(idleCommands(runs)).toEqual([]);
  const formatted = formatScript(script, runs);
  expect(golden(directory + name, formatted)).toBe(formatted);
});

test.each(names)("%s has one variant as written, and its outcome isn't two holders", (name) => {
  const whole = parseScript(read(name)).variants.filter((variant) => variant.faults.length === 0);
  expect(whole.map((variant) => variant.name)).toEqual(["as written"]);
  expect(whole[0]!.expected).not.toBe("two holders");
});

test.each(Object.entries(badExecutions))(
  "%s goes wrong without the repair, and ends well with it",
  (name, bad) => {
    const script = parseScript(read(name));
    const [broken, ...others] = script.variants;
    expect(broken!.faults.length).toBeGreaterThan(0);
    expect(runScript(script, broken!).outcome).toBe(bad);
    expect(runScript(script, others.at(-1)!).outcome).toBe("one holder");
  },
);
