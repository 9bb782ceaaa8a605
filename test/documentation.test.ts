import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Verdict } from "./snippets/runner.js";
import { dist, packagesFolder } from "./support/built.js";
import { manifest, packageNames } from "./support/reachable.js";
import {
  commentSnippets,
  documentationSnippets,
  pages,
  type Snippet,
  unfencedExamples,
} from "./support/snippets.js";

/**
 * All TypeScript in the documentation and in comments of the public API is compiled against the built
 * package, as a reader's program would be, and run against a cluster.
 */

const root = fileURLToPath(new URL("..", import.meta.url));
const snippets = [...documentationSnippets(), ...commentSnippets()];
const named = snippets.map((snippet, index) => ({ ...snippet, name: `example-${index}` }));

/**
 * Names that an example may use without importing them. A comment next to a method need not repeat where it
 * comes from.
 */
const taken = {
  leasehold: [
    "clusterStatus",
    "errorCodes",
    "LeaseholdError",
    "LeaseLostError",
    "open",
    "openGuardedCells",
    "startMember",
  ],
  "leasehold/testing": [
    "checkHistory",
    "conformanceCases",
    "MemoryCluster",
    "runConformance",
    "VirtualWorld",
  ],
};
const staged =
  "leases, lease, signal, member, report, storage, reportsToWrite, write, runScheduler, runDueJobs";

let project: string;
let diagnostics: string;
let verdicts: Verdict[];

/** A module whose `run` is the example. Its imports move to the top, as they must. */
function moduleOf({ code }: Snippet): string {
  const imports = [...code.matchAll(/^import [^;]*?from "[^"]+";?$/gm)].map((match) => match[0]);
  const body = imports.reduce((rest, line) => rest.replace(line, ""), code);
  const implied = Object.entries(taken).map(([module, names]) => {
    const missing = names.filter((name) => !imports.some((line) => new RegExp(`\\b${name}\\b`).test(line)));
    return `import { ${missing.join(", ")} } from "${module}";`;
  });
  return [
    ...imports,
    ...implied,
    imports.some((line) => line.includes("assert")) ? "" : 'import assert from "node:assert/strict";',
    'import type { Stage } from "./stage.js";',
    "export async function run(stage: Stage): Promise<unknown> {",
    `const { ${staged} } = stage;`,
    // In a block, so that the example may declare these names itself.
    `{\n${body}\n}`,
    "return undefined;\n}",
  ].join("\n");
}

const options = {
  target: "es2022",
  lib: ["es2023", "esnext.disposable", "dom"],
  module: "nodenext",
  types: ["node"],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  allowUnreachableCode: true,
  skipLibCheck: true,
  rootDir: "src",
  outDir: "out",
};

function writeProject(): void {
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  };
  write("package.json", '{ "type": "module" }');
  write("tsconfig.json", JSON.stringify({ compilerOptions: options, include: ["src"] }));
  for (const snippet of named) write(`src/${snippet.name}.ts`, moduleOf(snippet));
  for (const name of ["stage.ts", "runner.ts"])
    copyFileSync(join(root, "test/snippets", name), join(project, "src", name));
  mkdirSync(join(project, "node_modules", "@types"), { recursive: true });
  for (const name of ["leasehold", "@leasehold"])
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
  for (const name of ["@types/node", "@opentelemetry", "vitest"])
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
  // Compiled examples import the built library, except for the functions that open it.
  const doors: Record<string, string[]> = {
    leasehold: ["open", "openGuardedCells", "startMember", "clusterStatus"],
    "leasehold/flease": ["openFlease"],
    "leasehold/etcd": ["openEtcd"],
    "@leasehold/core": ["startCore"],
  };
  for (const name of packageNames) {
    const shim = join("out/node_modules", manifest(name).name);
    write(`${shim}/package.json`, '{ "type": "module", "exports": { ".": "./index.js", "./*": "./*.js" } }');
    for (const [subpath, path] of subpaths(name)) {
      const specifier = posix.join(manifest(name).name, subpath);
      const ours = (doors[specifier] ?? []).map(
        (door) => `export const ${door} = (...args) => globalThis.leaseholdTheatre.${door}(...args);`,
      );
      const from = `export * from "${pathToFileURL(join(packagesFolder, name, path)).href}";`;
      write(`${shim}/${subpath === "." ? "index" : subpath}.js`, [from, ...ours].join("\n"));
    }
  }
}

/** The number of tokens between white space that have a letter or a digit. */
function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/** The anchors of a page, as GitHub makes them from headings. */
function headingsOf(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, "");
  return [...prose.matchAll(/^#+ (.+)$/gm)].map((match) =>
    match[1]!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** The export subpaths of a package, and the file of each, relative to the package's folder. */
function subpaths(name: string): [string, string][] {
  return Object.entries(manifest(name).exports).flatMap(([subpath, file]) =>
    typeof file === "string" || subpath.includes("*") ? [] : [[subpath, file.default]],
  );
}

async function perform(): Promise<Verdict[]> {
  const names = named.filter(({ runs }) => runs).map(({ name }) => name);
  const child = fork(
    join(project, "out", "runner.js"),
    [pathToFileURL(join(dist, "index.js")).href, ...names],
    {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    },
  );
  const told: Verdict[] = [];
  child.on("message", (verdict) => told.push(verdict as Verdict));
  await once(child, "exit");
  return told;
}

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "leasehold-docs-"));
  writeProject();
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const compiled = spawnSync(process.execPath, [compiler, "-p", project, "--pretty", "false"], {
    cwd: project,
    encoding: "utf8",
  });
  diagnostics = compiled.stdout + compiled.stderr;
  verdicts = await perform();
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

describe("examples in the text", () => {
  test("exist", () => {
    expect(documentationSnippets().length).toBeGreaterThan(5);
    expect(commentSnippets().length).toBeGreaterThan(5);
    expect(unfencedExamples()).toEqual([]);
    // Bounds the number of examples that don't run, so that they stay rare.
    expect(snippets.filter(({ runs }) => !runs).length).toBeLessThanOrEqual(2);
  });

  test("compile without errors in the helpers of this test", () => {
    expect(diagnostics.split("\n").filter((line) => line !== "" && !/example-\d+\.ts/.test(line))).toEqual(
      [],
    );
  });

  test.each(named)("$place compiles", ({ name }) => {
    const errors = diagnostics.split("\n").filter((line) => line.includes(`${name}.ts(`));
    expect(errors).toEqual([]);
  });

  test.each(named.filter(({ runs }) => runs))("$place runs", ({ name }) => {
    // A verdict with an error would be shown here.
    expect(verdicts.find((verdict) => verdict.name === name)).toEqual({ name });
  });
});

describe("the text", () => {
  test.each(pages())("links in %s lead to files that exist", (page) => {
    const text = readFileSync(join(root, page), "utf8");
    const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)/g)].map((match) => match[1]!);
    expect(targets.filter((target) => !existsSync(join(root, dirname(page), target)))).toEqual([]);
  });

  test.each(pages())("links in %s lead to headings that exist", (page) => {
    const text = readFileSync(join(root, page), "utf8");
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)];
    const lost = links.filter(([, path, heading]) => {
      const target = path === "" ? page : join(dirname(page), path!);
      return !headingsOf(readFileSync(join(root, target), "utf8")).includes(heading!);
    });
    expect(lost.map(([link]) => link)).toEqual([]);
  });

  test("docs/README.md, or the README of its folder, links to every page, and the README to docs/README.md", () => {
    const indexOf = (page: string) => {
      const own = join(dirname(page), "README.md");
      return page.startsWith("docs/") && page !== own && existsSync(join(root, own)) ? own : "docs/README.md";
    };
    const isListed = (page: string) => {
      const index = indexOf(page);
      return readFileSync(join(root, index), "utf8").includes(`](${relative(dirname(index), page)})`);
    };
    const others = pages().filter((page) => page !== "README.md" && page !== "docs/README.md");
    expect(others.filter((page) => !isListed(page))).toEqual([]);
    expect(readFileSync(join(root, "README.md"), "utf8")).toContain("](docs/README.md)");
  });

  test("the pages of docs have at most 50,000 words together, and each page has at most 2,500", () => {
    const counted = pages()
      .filter((page) => page.startsWith("docs/") && !page.startsWith("docs/decisions/"))
      .map((page) => ({ page, words: wordsIn(readFileSync(join(root, page), "utf8")) }));
    const all = { page: "all pages of docs", words: counted.reduce((sum, { words }) => sum + words, 0) };
    const tooLong = [
      ...(all.words > 50_000 ? [all] : []),
      ...counted.filter(({ words }) => words > 2_500),
    ].map(({ page, words }) => `${page}: ${words} words`);
    expect(counted.length).toBeGreaterThan(50);
    expect(tooLong).toEqual([]);
  });

  test("figures of single operations are the latest measured, on every page that shows them", () => {
    const script = join(root, "scripts/figures.mjs");
    const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("docs/settings.md has every setting", () => {
    const settings = readFileSync(join(root, "docs/settings.md"), "utf8");
    const sources = [
      "packages/leasehold/src/runtime/options.ts",
      "packages/leasehold/src/flease/tcp/types.ts",
      "packages/leasehold/src/runtime/security/options.ts",
      "packages/leasehold/src/lease/options.ts",
    ].map((path) => readFileSync(join(root, path), "utf8"));
    const bodies = sources.flatMap((source) => [
      ...source.matchAll(/^export interface \w+Options [^{]*\{\n([\s\S]*?)^\}/gm),
    ]);
    const names = bodies.flatMap((body) =>
      [...body[1]!.matchAll(/^  (\w+)\??: /gm)].map((match) => match[1]!),
    );
    expect(names).toEqual(expect.arrayContaining(["ttlMax", "name", "wait", "maxHold"]));
    expect(names.filter((name) => !settings.includes(`\`${name}\``))).toEqual([]);
  });
});
