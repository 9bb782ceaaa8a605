import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

/** Every test runs somewhere: the files of each suite, and the suites that `.ci/run` calls. */

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const filesBelow = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`);

interface Suite {
  readonly name: string;
  readonly include: string[];
  readonly exclude?: string[];
}

/** The suites that `.ci/run` leaves out, and the reasons. */
const leftOut = {
  upgrade: "the release before is built, and clusters are restarted for minutes",
  fence: "databases are installed, and leases of holders that are stopped run out",
  frameworks: "frameworks are installed, and databases",
  observability: "Prometheus is installed",
  rotation: "clusters reread their certificates and keys for minutes",
  release: "a copy of the repository is packed again and again",
  console: "a browser is installed",
  clients: "Go and Python are installed",
  site: "a browser and the tools of the site are installed",
  deploy: "a fresh Debian is made for it",
  adopters: "Patroni and PostgreSQL are installed, and killed for minutes",
  files: "clients of WebDAV are installed, and nodes of files killed",
  core: "servers of etcd are installed and killed for a quarter of an hour",
  etcd: "servers of etcd are installed, and clients of it started hundreds of times",
};

const {
  projects: suites,
  harderTests,
  thoroughTests,
  chosen,
  matches,
  testFiles,
} = (await import("../vitest.config.js")) as unknown as {
  projects: Suite[];
  harderTests: string[];
  thoroughTests: string[];
  chosen(words: readonly string[]): Suite[];
  matches(pattern: string, path: string): boolean;
  testFiles: string[];
};

const isOneOf = (patterns: readonly string[] = [], path: string) =>
  patterns.some((pattern) => matches(pattern, path));

describe("the suites", () => {
  test("have each test file once; the random suite also has those that try harder there", () => {
    expect(testFiles.length).toBeGreaterThan(200);
    const wrong = testFiles.flatMap((path) => {
      const having = suites.filter(
        ({ include, exclude }) => isOneOf(include, path) && !isOneOf(exclude, path),
      );
      const expected = harderTests.includes(path) ? 2 : 1;
      return having.length === expected
        ? []
        : [`${path}: ${having.map(({ name }) => name).join(", ") || "none"}`];
    });
    expect(wrong).toEqual([]);
  });

  test("replace no modules in the thorough tests, which share them", () => {
    const replacing = suites.find(({ name }) => name === "fast-isolated")!.include;
    expect(thoroughTests.filter((path) => replacing.includes(path))).toEqual([]);
  });

  test.each([
    [[], "fast fast-isolated"],
    [["--bail=1"], "fast fast-isolated"],
    [["test/"], "fast fast-isolated"],
    [["./test"], "fast fast-isolated"],
    [["packages/leasehold/src/cli"], "fast fast-isolated"],
    [["packages/files/src/disk"], "fast fast-isolated thorough"],
    [["packages/files/src/disk/crashes.test.ts"], "fast fast-isolated thorough"],
    [["test/tidy.test.ts"], "fast fast-isolated"],
    [["test/e2e/"], "fast fast-isolated e2e"],
    [["packages/leasehold/src/cli/up/up.processes.test.ts"], "fast fast-isolated processes"],
    [["test/planted-core.test.ts"], "fast fast-isolated random"],
    [["test/", "packages/leasehold/src/cli/up/up.processes.test.ts"], "fast fast-isolated processes"],
  ])("%j is run by %s", (words, names) => {
    expect(
      chosen(words)
        .map(({ name }) => name)
        .join(" "),
    ).toBe(names);
  });

  test("run only the file if a folder and a file in it are given", () => {
    const file = "packages/leasehold/src/cli/up/up.processes.test.ts";
    expect(chosen(["test/", file]).find(({ name }) => name === "processes")!.include).toEqual([file]);
  });

  test("are called by .ci/run, except for those with a reason", () => {
    const called = read(".ci/run");
    const isCalled = ({ name }: Suite) =>
      name.startsWith("fast")
        ? /^step npm test$/m.test(called)
        : new RegExp(`(?:--project|test:slow --) ${name}\\b`).test(called);
    expect(suites.filter((suite) => !isCalled(suite)).map(({ name }) => name)).toEqual(Object.keys(leftOut));
  });

  test("are in the list of slow suites in CONTRIBUTING.md", () => {
    const [listed = ""] = /^\| `npm run test:slow -- NAME` \|.*$/m.exec(read("CONTRIBUTING.md")) ?? [];
    const slow = suites.map(({ name }) => name).filter((name) => !name.startsWith("fast"));
    expect(slow.filter((name) => !listed.includes(`\`${name}\``))).toEqual([]);
  });
});

/** The words after `npm run` and after `npm run NAME --` in all files that people read. */
const named = ["README.md", "CONTRIBUTING.md", ".ci/run", ".github", "docs", "scripts", "test", "bench"]
  .flatMap((path) => (path.includes(".") && path !== ".github" ? [path] : filesBelow(path)))
  .filter((path) => /\.(?:md|mjs|ts|yml)$|\/run$/.test(path) && !path.includes("node_modules"))
  .flatMap((path) =>
    [...read(path).matchAll(/npm run (?:--silent )?([a-z:]+)(?: -- ([a-z][a-z0-9]*))?/g)].map(
      ([, script = "", choice]) => ({
        path,
        script,
        choice,
      }),
    ),
  );

describe("a command that a page or a program names", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

  test("is a script of package.json", () => {
    // A reader's own program.
    const unknown = named.filter(({ script }) => !(script in scripts) && script !== "migrate");
    expect(named.length).toBeGreaterThan(50);
    expect(unknown).toEqual([]);
  });

  test("names one of its choices if the script has choices", () => {
    const families = Object.keys(scripts).filter((name) => scripts[name]!.includes("choose.mjs"));
    expect(families.length).toBeGreaterThan(2);
    const unknown = families.flatMap((family) => {
      const { stderr } = spawnSync(process.execPath, [join(root, "scripts/choose.mjs"), family], {
        encoding: "utf8",
      });
      const choices = new Set([...stderr.matchAll(/^ {2}([a-z0-9]+) /gm)].map(([, choice]) => choice));
      return named.filter(
        ({ script, choice }) => script === family && choice !== undefined && !choices.has(choice),
      );
    });
    expect(unknown).toEqual([]);
  });
});

test("every file that CONTRIBUTING.md names exists", () => {
  const paths = read("CONTRIBUTING.md").matchAll(
    /`((?:bench|docs|examples|packages|scripts|test)\/[\w./-]+)`/g,
  );
  const missing = [...paths].map(([, path = ""]) => path).filter((path) => !existsSync(join(root, path)));
  expect(missing).toEqual([]);
});

interface Job {
  readonly steps: readonly {
    readonly uses?: string;
    readonly run?: string;
    readonly with?: Readonly<Record<string, unknown>>;
  }[];
}

interface Workflow {
  readonly permissions: unknown;
  readonly concurrency: Readonly<Record<string, unknown>>;
  readonly jobs: Record<string, Job> & {
    readonly fast: Job & { readonly strategy: { readonly matrix: { readonly node: readonly number[] } } };
  };
}

describe("files for the repository's host", () => {
  test("parse: the workflow and the forms of issues", () => {
    const paths = filesBelow(".github").filter((path) => path.endsWith(".yml"));
    expect(paths.length).toBeGreaterThan(3);
    const unread = paths.filter((path) => typeof parse(read(path)) !== "object");
    expect(unread).toEqual([]);
  });

  const workflow = parse(read(".github/workflows/ci.yml")) as Workflow;
  const jobs = Object.values(workflow.jobs);
  const steps = jobs.flatMap((job) => job.steps);

  test("run the fast tests on the Node versions that `npm run test:slow -- nodes` and the README have", () => {
    const [, versions = ""] = /versions = \[(.*?)\]/.exec(read("scripts/test-nodes.mjs")) ?? [];
    const lines = [...versions.matchAll(/"(\d+)\./g)].map(([, line]) => Number(line));
    expect(workflow.jobs.fast.strategy.matrix.node).toEqual(lines);
    const inWords = `${lines.slice(0, -1).join(", ")} and ${lines.at(-1)}`;
    expect(read("README.md")).toContain(`CI tests Node ${inWords}.`);
  });

  test("ask for no more rights than needed, and cancel no run of main", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    expect(jobs.filter((job) => "permissions" in job)).toEqual([]);
    const checkouts = steps.filter(({ uses = "" }) => uses.startsWith("actions/checkout@"));
    expect(checkouts.length).toBe(jobs.length);
    for (const { with: options } of checkouts) expect(options).toEqual({ "persist-credentials": false });
    expect(workflow.concurrency["cancel-in-progress"]).toBe("${{ github.event_name == 'pull_request' }}");
  });

  test("keep npm's cache in each job", () => {
    const caches = steps.filter((step) => step.with?.["cache"] === "npm");
    expect(caches.length).toBe(jobs.length);
  });

  test("let Git read the checkout in a container before anything runs there", () => {
    const full = jobs.find((job) => "container" in job);
    const commands = full?.steps.flatMap(({ run = [] }) => run) ?? [];
    expect(commands).toEqual(['git config --global --add safe.directory "$GITHUB_WORKSPACE"', ".ci/run"]);
  });
});
