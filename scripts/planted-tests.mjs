// Plants the mistakes that a test beside the sources must catch (`caughtBy`), one at a time, and runs that
// test: `npm run planted -- tests [part of a name]`. `planted-servers.mjs` handles those in server processes.
import { join } from "node:path";
import { createVitest } from "vitest/node";
import { mistakes } from "../test/planted/mistakes.mjs";
import { root } from "./planted-sources.mjs";

const [part = ""] = process.argv.slice(2);
const chosen = mistakes.filter(
  ({ name, caughtBy }) => caughtBy !== undefined && caughtBy.servers !== true && name.includes(part),
);

// The loaded sources contain every mistake behind a switch, so one instance serves all of them.
const vitest = await createVitest("test", {
  config: join(root, "test", "planted", "vitest.config.ts"),
  watch: false,
  reporters: [{}],
});

/** Returns the problem with the test, unless it fails as it should. */
async function run({ name, caughtBy: { file, test: testNamePattern, seeds } }) {
  process.env.LEASEHOLD_PLANTED = name;
  if (seeds === undefined) delete process.env.LEASEHOLD_SEEDS;
  else process.env.LEASEHOLD_SEEDS = String(seeds);
  const test = vitest.getRootProject().createSpecification(join(root, file), { testNamePattern });
  const { testModules } = await vitest.rerunTestSpecifications([test]);
  const results = testModules.flatMap(({ children }) => [...children.allTests()]);
  const states = new Set(results.map((each) => each.result().state));
  if (states.has("failed")) return "";
  return states.has("passed") ? `NOT caught by ${file}` : `${file} did not run`;
}

let missed = 0;
for (const mistake of chosen) {
  const startMs = performance.now();
  const problem = await run(mistake);
  const isMissed = problem !== "";
  if (isMissed) missed += 1;
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  const verdict = isMissed ? `MISSED: ${problem}` : "caught";
  process.stdout.write(`${mistake.name}: ${verdict} (${seconds} s)\n`);
}
await vitest.close();
process.stdout.write(`${chosen.length - missed} of ${chosen.length} caught\n`);
process.exitCode = missed === 0 && chosen.length > 0 ? 0 : 1;
