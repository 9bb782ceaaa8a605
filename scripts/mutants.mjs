// Plants mistakes into the sources as text, one at a time, and runs the test that has to catch each: `node
// scripts/mutants.mjs [part of a name]`. For mistakes in drivers and files, where a switch in the code would be in the way.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mutants } from "../test/mutants/table.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const [part = ""] = process.argv.slice(2);
const chosen = mutants.filter(({ name }) => name.includes(part));
const vitest = join(root, "node_modules", "vitest", "vitest.mjs");

function run(mutant) {
  const { file, find, replace, also = [], seeds = "", caughtBy } = mutant;
  const edits = [[find, replace], ...also];
  const source = readFileSync(join(root, file), "utf8");
  const wrong = edits.find(([text]) => source.split(text).length !== 2);
  if (wrong !== undefined) return `this does not stand exactly once in ${file}: ${wrong[0]}`;
  const env = { ...process.env, CI: "", LEASEHOLD_MUTANT: JSON.stringify({ file, edits }) };
  if (seeds !== "") env.LEASEHOLD_SEEDS = seeds;
  const words = [vitest, "run", "--config", "vitest.mutants.config.ts", "--bail", "1", caughtBy];
  const { status, stdout } = spawnSync(process.execPath, words, { cwd: root, env, encoding: "utf8" });
  if (status === 0) return `NOT caught by ${caughtBy}`;
  return /Tests .*failed/.test(stdout) ? "" : `${caughtBy} did not run: ${stdout.slice(-500)}`;
}

let missed = 0;
for (const mutant of chosen) {
  const startMs = performance.now();
  const problem = run(mutant);
  if (problem !== "") missed += 1;
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  process.stdout.write(
    `${problem === "" ? "caught" : "MISSED"} ${seconds} s  ${mutant.name}${problem && `: ${problem}`}\n`,
  );
}
process.stdout.write(`${chosen.length - missed} of ${chosen.length} caught\n`);
process.exitCode = missed === 0 && chosen.length > 0 ? 0 : 1;
