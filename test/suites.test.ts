import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

/** Each test runs somewhere: which suite has which files, and which suites `.ci/run` calls. */

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const filesBelow = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`);

interface Choice {
  readonly include?: string[];
  readonly exclude?: string[];
}
interface Config {
  readonly test: Choice & { readonly projects?: { readonly test: Choice }[] };
}

/** Those that `.ci/run` leaves out, and why. */
const leftOut = {
  "vitest.core.config.ts": "servers of etcd are installed and killed for a quarter of an hour",
  "vitest.etcd.config.ts": "servers of etcd are installed, and clients of it started hundreds of times",
  "vitest.files.config.ts": "clients of WebDAV are installed, and nodes of files killed",
};

/** The forms of patterns that the configurations use. */
function matches(pattern: string, path: string): boolean {
  const form = pattern
    .replace(/[.+]/g, "\\$&")
    .replaceAll("**/", "\n")
    .replaceAll("*", "[^/]*")
    .replaceAll("\n", "(?:.*/)?");
  return new RegExp(`^${form}$`).test(path);
}

const isOneOf = (patterns: readonly string[] = [], path: string) =>
  patterns.some((pattern) => matches(pattern, path));

/** How often a suite has a file. */
function times(suite: Config, path: string): number {
  const parts = suite.test.projects?.map((project) => project.test) ?? [suite.test];
  return parts.filter(({ include, exclude }) => isOneOf(include, path) && !isOneOf(exclude, path)).length;
}

const configs = readdirSync(root).filter((name) => /^vitest\..*config\.ts$/.test(name));
const suites = await Promise.all(
  configs.map(async (name) => ({
    name,
    config: ((await import(join(root, name))) as { default: Config }).default,
  })),
);
const { harderTests } = (await import("../vitest.config.js")) as { harderTests: string[] };

describe("the suites", () => {
  test("have each test file once; the random one also those that try harder there", () => {
    const files = ["packages", "test"].flatMap(filesBelow).filter((path) => path.endsWith(".test.ts"));
    expect(files.length).toBeGreaterThan(200);
    const wrong = files.flatMap((path) => {
      const having = suites.flatMap(({ name, config }) => Array<string>(times(config, path)).fill(name));
      const expected = harderTests.includes(path) ? 2 : 1;
      return having.length === expected ? [] : [`${path}: ${having.join(", ") || "none"}`];
    });
    expect(wrong).toEqual([]);
  });

  test("are called by .ci/run, but for those that say why not", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const called = [
      ...read(".ci/run").matchAll(/^ *(?:npm run ([\w:]+)|npm (test)\b|npx (vitest .*))/gm),
    ].map(([, script, npmTest, words]) => words ?? scripts[script ?? npmTest!]!);
    const isCalled = (name: string) =>
      called.some((words) =>
        name === "vitest.config.ts" ? /\bvitest run$/.test(words) : words.includes(`--config ${name}`),
      );
    expect(configs.filter((name) => !isCalled(name))).toEqual(Object.keys(leftOut));
  });
});
