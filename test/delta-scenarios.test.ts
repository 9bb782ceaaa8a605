import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runScript } from "./scenarios/delta-runner/script.js";
import { golden } from "./scenarios/golden.js";

/**
 * Golden traces of leases on shared storage: `test/scenarios/delta`. `UPDATE_SCRIPTS=1 npx vitest run
 * test/delta-scenarios.test.ts` writes the printed parts anew, but still refuses a trace with two holders.
 */
const directory = fileURLToPath(new URL("./scenarios/delta/", import.meta.url));

test.each(readdirSync(directory).sort())("%s", async (name) => {
  const path = directory + name;
  const printed = await runScript(readFileSync(path, "utf8"));
  expect(golden(path, printed)).toBe(printed);
});
