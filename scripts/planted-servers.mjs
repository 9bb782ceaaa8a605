// Plants the mistakes that tests with real servers must find (`caughtBy` with `servers`), one at a time, in a
// build of its own, and runs that test: `npm run planted -- servers [part of a name]`.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { mistakes } from "../test/planted/mistakes.mjs";
import { compilePlanted, root } from "./planted-sources.mjs";

const [part = ""] = process.argv.slice(2);
const chosen = mistakes.filter(
  ({ name, caughtBy }) => caughtBy !== undefined && caughtBy.servers === true && name.includes(part),
);

const built = join(root, `dist.servers.${process.pid}`);
process.on("exit", () => rmSync(built, { recursive: true, force: true }));
if (compilePlanted(built) !== 0) process.exit(1);

/** The number of random sequences within which a mistake must be found. */
const seedsMost = 1_000;

let missed = 0;
for (const { name, caughtBy } of chosen) {
  const words = ["vitest", "run", "--project", "core", "-t", "random sequences", caughtBy.file];
  const { status, stdout } = spawnSync("npx", words, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      LEASEHOLD_DIST: join(built, "packages", "leasehold", "dist"),
      LEASEHOLD_PLANTED: name,
      LEASEHOLD_SEEDS: String(caughtBy.seeds ?? seedsMost),
    },
  });
  const after = /(\d+) sequences/.exec(stdout)?.[0];
  const isCaught = status !== 0 && after !== undefined;
  if (!isCaught) missed += 1;
  process.stdout.write(`${name}: ${isCaught ? "caught" : "MISSED"} after ${after ?? "nothing"}\n`);
}
process.stdout.write(`${chosen.length - missed} of ${chosen.length} caught\n`);
process.exitCode = missed === 0 && chosen.length > 0 ? 0 : 1;
