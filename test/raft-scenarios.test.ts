import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runScript } from "./scenarios/raft-runner/script.js";

/**
 * Golden scripts of the replicated log: each file in `test/raft-scripts` is a list of commands, with what they print below
 * them. `UPDATE_SCRIPTS=1 npx vitest run test/raft-scenarios.test.ts` writes the printed parts anew.
 */
const directory = fileURLToPath(new URL("./scenarios/raft/", import.meta.url));

test.each(readdirSync(directory).sort())("%s", (name) => {
  const text = readFileSync(directory + name, "utf8");
  const printed = runScript(text);
  if (process.env["UPDATE_SCRIPTS"] === "1") writeFileSync(directory + name, printed);
  expect(readFileSync(directory + name, "utf8")).toBe(printed);
});
