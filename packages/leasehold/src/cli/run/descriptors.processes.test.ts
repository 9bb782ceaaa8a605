import { execFile } from "node:child_process";
import { expect, test } from "vitest";
import { dist, type Finished, mainPath } from "../../../../../test/support/built.js";

/** Commands that may open too few files; their shell sets the limit. */

function limited(files: number, words: readonly string[]): Promise<Finished> {
  const script = `ulimit -n ${files} && exec "$@"`;
  return new Promise((resolve) => {
    const child = execFile("sh", ["-c", script, "sh", process.execPath, ...words], (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr }),
    );
  });
}

const shortage = /^leasehold: (?:\S+: )?EMFILE: too many open files: .*ulimit -n\)\n$/;

test("with too few files for its modules `run` prints one line, and ends with 71; with enough it runs", async () => {
  const ended: Finished[] = [];
  for (const files of [24, 26, 28, 30, 40, 64]) {
    const words = [mainPath, "run", "--endpoints", "memory:x", "a", "--", "echo", "ran"];
    ended.push(await limited(files, words));
  }
  const seen = ended.map(
    ({ code, stdout, stderr }) => `${code} ${stdout}${stderr.replace(shortage, "one line")}`,
  );
  expect([seen[0], seen.at(-1)]).toEqual(["71 one line", "0 ran\n"]);
  expect(seen.filter((text) => text !== "71 one line" && text !== "0 ran\n")).toEqual([]);
});

/** Loads, uses up all descriptors, and then continues. */
const withNoneLeft = (load: string, run: string) => [
  "--input-type=module",
  "--eval",
  `${load}
  const { openSync } = await import("node:fs");
  await import("node:child_process").then(({ spawn }) => new Promise((done) => spawn("true").on("close", done)));
  try { for (;;) openSync("/dev/null"); } catch {}
  ${run}`,
];

test("when none is left for the guard, `run` prints one line, ends with 71, and has released the lease", async () => {
  const load = `
  const { runUnderLease } = await import("${dist}/cli/run/run-under-lease.js");
  const { SignalRelay } = await import("${dist}/cli/run/signal-relay.js");
  const { describeFailure } = await import("${dist}/cli/common/failure.js");
  const leases = await (await import("${dist}/index.js")).open("memory:x");`;
  const run = `
  const request = { resource: "a", command: "true", args: [], conflictExitCode: 75, lostExitCode: 76, print: console.log };
  const error = await runUnderLease(leases, request, new SignalRelay()).catch((reason) => reason);
  const { message, exitCode } = describeFailure(error);
  console.log(\`leasehold: \${message}\`, exitCode, (await leases.list()).length);
  process.exit(0);`;
  const { stdout, stderr } = await limited(64, withNoneLeft(load, run));
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^leasehold: EMFILE: too many open files: .* 71 0\n$/);
});

test.each([
  ["core", "packageVersion();"],
  ["files", "packageVersion();"],
  ["sim", "packageVersion();"],
  ["run", ""],
])(
  "when none is left to load what `%s` is made of, that is told, and not that a package is missing",
  async (name, loadVersion) => {
    const load = `
  const { main } = await import("${dist}/cli/command.js");
  const { packageVersion } = await import("${dist}/runtime/package-version.js");
  ${loadVersion}`;
    const run = `process.exit(await main(["${name}", "--help"]));`;
    const { code, stdout, stderr } = await limited(64, withNoneLeft(load, run));
    expect({ code, stdout, stderr }).toEqual({
      code: 71,
      stdout: "",
      stderr: expect.stringMatching(shortage) as string,
    });
  },
);

test("when none is left for the process behind a front, the front reports it", async () => {
  const load = `const { beFront } = await import("${dist}/cli/common/front.js");`;
  const { code, stderr } = await limited(64, withNoneLeft(load, "beFront();"));
  expect({ code, stderr }).toEqual({ code: 71, stderr: expect.stringMatching(shortage) as string });
});
