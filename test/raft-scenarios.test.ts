import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { golden } from "./scenarios/golden.js";
import { runScript } from "./scenarios/raft-runner/script.js";

/**
 * Golden traces of the replicated log: each file in `test/scenarios/raft` is a list of commands, followed by
 * their output. `UPDATE_SCRIPTS=1 npx vitest run test/raft-scenarios.test.ts` writes the printed parts anew.
 */
const directory = fileURLToPath(new URL("./scenarios/raft/", import.meta.url));

test.each(readdirSync(directory).sort())("%s", async (name) => {
  const path = directory + name;
  const printed = await runScript(readFileSync(path, "utf8"));
  expect(golden(path, printed)).toBe(printed);
});
