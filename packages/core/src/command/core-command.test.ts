import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { buildProgram } from "leasehold/inner/cli/program.js";

/** Parses `leasehold core` command lines, such as those in etcd's unit files. */

vi.mock("./core.js", () => ({
  core: (flags: unknown, told: readonly string[]) => {
    got = flags as Record<string, unknown>;
    warnings = told.join("\n");
    return Promise.resolve(0);
  },
}));

let got: Record<string, unknown> | undefined;
let warnings: string;

beforeEach(() => {
  got = undefined;
  warnings = "";
  for (const variable of Object.keys(process.env))
    if (variable.startsWith("ETCD_")) vi.stubEnv(variable, undefined);
});
afterEach(() => void vi.unstubAllEnvs());

async function parse(...words: string[]): Promise<string> {
  got = undefined;
  warnings = "";
  try {
    await (await buildProgram(() => undefined)).parseAsync(["core", ...words], { from: "user" });
    return got === undefined ? "nothing happened" : "taken";
  } catch (error) {
    return (error as Error).message;
  }
}

const page = readFileSync(new URL("../../../../docs/cli-core.md", import.meta.url), "utf8");

/** The flags named in the paragraph of the page that begins with `words`. */
function flagsAfter(words: string): string[] {
  const start = page.indexOf(words);
  expect(start).toBeGreaterThan(0);
  const paragraph = page.slice(start, page.indexOf("\n- ", start));
  return [...paragraph.matchAll(/`--([a-z0-9-]*[a-z0-9])`/g)].map(([, flag]) => flag!);
}

const ignored = flagsAfter("Taken with a warning");
const refused = flagsAfter("Refused, as the server would");

test("each etcd flag that the page lists as accepted is accepted, in both of Go's forms", async () => {
  expect(ignored.length).toBeGreaterThan(25);
  for (const flag of ignored) {
    for (const words of [[`--${flag}`, "1ms"], [`--${flag}=1ms`]]) {
      expect([flag, await parse(...words, "--name", "a")]).toEqual([flag, "taken"]);
      expect(got).toEqual({ name: "a" });
      expect(warnings).toContain(`--${flag} has no effect`);
    }
    expect([flag, await parse(`--${flag}`)]).toEqual([flag, "taken"]);
  }
});

test("each flag that the page lists as refused is refused with a reason, unless its value matches fixed behaviour", async () => {
  expect(refused.length).toBeGreaterThan(9);
  for (const flag of refused) expect(await parse(`--${flag}`, "x")).toMatch(`--${flag} cannot be taken: `);
  expect(await parse("--enable-v2=false", "--proxy", "off", "--tls-min-version=TLS1.2")).toBe("taken");
  expect(warnings).toBe("");
});

test("experimental flags are accepted under any name, and those that the core supports take effect", async () => {
  // Flags of 3.4 and 3.5, with and without values, and one that never existed.
  const words = [
    "--experimental-compaction-batch-limit=1000",
    "--experimental-enable-v2v3",
    "/v2",
    "--experimental-peer-skip-client-san-verification",
    "--experimental-warning-apply-duration",
    "100ms",
    "--experimental-anything-at-all",
    "--experimental-corrupt-check-time",
    "10m",
    "--experimental-initial-corrupt-check",
    "--experimental-warning-apply-duration=1s",
  ];
  expect(await parse(...words, "--name", "a")).toBe("taken");
  expect(got).toEqual({
    name: "a",
    experimentalCorruptCheckTime: "10m",
    experimentalInitialCorruptCheck: true,
  });
  expect(warnings.match(/--experimental-[a-z0-9-]+ has no effect/g)).toHaveLength(5);
});

test("a flag that etcd does not have is refused by name, even if it resembles an experimental one", async () => {
  for (const flag of ["--nonsense", "--experimental", "--experimental-", "--experimentals-x"])
    expect(await parse(flag)).toContain(flag);
  expect(got).toBeUndefined();
});
