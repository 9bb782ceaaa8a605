import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

/** `.ci/run` ends with the failures, since hosts show the end of a long output. */

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs these lines as `.ci/run` would. Returns the exit code and the lines printed. */
function run(...script: string[]) {
  const { status, stdout } = spawnSync(
    "bash",
    ["-c", ["set -euo pipefail", ". .ci/steps", ...script].join("\n")],
    { cwd: root, encoding: "utf8" },
  );
  return { status, lines: stdout.trimEnd().split("\n") };
}

/**
 * A step that prints as vitest does: this many failed tests with two lines each, followed by much other
 * output.
 */
const failing = (name: string, failures: number) =>
  `${name}() {
    for i in $(seq ${failures}); do printf '\\e[31m FAIL \\e[39m ${name}.test.ts > %s\\nAssertionError: not %s\\n' $i $i; done
    seq 200
    return 3
  }`;

describe("the steps of .ci/run", () => {
  test("print nothing at the end if none has failed", () => {
    expect(run("step echo first", "step echo second")).toEqual({ status: 0, lines: ["first", "second"] });
  });

  test("stop at the first failure, and end with the failed tests", () => {
    const { status, lines } = run(failing("suite", 2), "step suite --all", "step echo later");
    expect(status).toBe(1);
    expect(lines).not.toContain("later");
    expect(lines.at(-6)).toMatch(/^failed /);
    expect(lines.slice(-5)).toEqual([
      "== suite --all",
      " FAIL  suite.test.ts > 1",
      "AssertionError: not 1",
      " FAIL  suite.test.ts > 2",
      "AssertionError: not 2",
    ]);
  });

  test("end with the last lines of a step that doesn't run vitest", () => {
    const { lines } = run("broken() { seq 100; return 1; }", "step broken");
    expect(lines.slice(-9)).toEqual([
      "== broken",
      ...Array.from({ length: 8 }, (_, index) => String(index + 93)),
    ]);
  });

  test("name each failed step, those run beside others too, in 60 lines at most", () => {
    const { status, lines } = run(
      failing("one", 100),
      failing("two", 100),
      failing("three", 1),
      "{ quiet_step three; quiet_step echo never; } &",
      "job=$!",
      "step one || true",
      "step two || true",
      'wait "$job"',
    );
    const end = lines.slice(lines.findIndex((line) => line.startsWith("failed (")));
    expect(status).toBe(1);
    expect(end.length).toBeLessThanOrEqual(60);
    expect(end.filter((line) => line.startsWith("==")).sort()).toEqual(["== one", "== three", "== two"]);
    expect(end.filter((line) => line.includes("FAIL ")).length).toBeGreaterThan(15);
    expect(lines).toContain("FAILED beside the others: three");
    expect(lines.join()).not.toContain("never");
  });

  test("fill 60 lines, and no more, for a step with many failures", () => {
    const { lines } = run(failing("often", 100), "step often");
    expect(lines.length - lines.findIndex((line) => line.startsWith("failed ("))).toBe(60);
  });
});
