import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { dist } from "../../../../../test/support/built.js";

/** A guard that is busy loading and does not notice that its pipes have closed. */
const loading = "data:text/javascript,setInterval(() => undefined, 1000)";

test("the outputs are closed when the process has ended, though its unused guard still loads", async () => {
  const script = `
    const { GuardStarter } = await import("${dist}/cli/run/guard-starter.js");
    const guards = new GuardStarter("--import=${loading}");
    guards[Symbol.dispose]();
    process.exit(0);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.resume();
  // The guard's exit, and the end of its output, which the guard would keep open for ever.
  expect(await once(child, "close")).toEqual([0, null]);
});
