import { readFileSync, readdirSync } from "node:fs";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import type { VitestPluginContext } from "vitest/node";
import { mistakes } from "./test/planted/mistakes.mjs";
import { plant } from "./test/planted/plant.mjs";
import { seedOf } from "./test/support/seed.js";

// One for the whole run: the processes that run tests inherit it.
process.env["LEASEHOLD_SEED"] = String(seedOf());

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const leasehold = here("./packages/leasehold/src");
/** What the sources and tests of this build import by a name: the sources, and not what is built. */
export const alias = [
  { find: "#planted", replacement: here("./test/planted/switches.ts") },
  { find: /^leasehold$/, replacement: `${leasehold}/index.ts` },
  { find: /^leasehold\/testing$/, replacement: `${leasehold}/testing/index.ts` },
  { find: /^leasehold\/(etcd\/gen\/.*)\.js$/, replacement: `${leasehold}/$1.ts` },
  { find: /^leasehold\/inner\/(.*)\.js$/, replacement: `${leasehold}/$1.ts` },
  { find: /^leasehold\/(common|runtime|journal|cli)$/, replacement: `${leasehold}/shared/$1.ts` },
  { find: /^leasehold\/([a-z]+)$/, replacement: `${leasehold}/entry/$1.ts` },
  { find: /^@leasehold\/(\w+)\/inner\/(.*)\.js$/, replacement: `${here("./packages")}/$1/src/$2.ts` },
  { find: /^@leasehold\/(\w+)\/command$/, replacement: `${here("./packages")}/$1/src/command/$1-command.ts` },
  { find: /^@leasehold\/(console|fence)\/(\w+)$/, replacement: `${here("./packages")}/$1/src/$2.ts` },
  { find: /^@leasehold\/(\w+)$/, replacement: `${here("./packages")}/$1/src/index.ts` },
];

const root = here(".");
const planted = createHash("sha256").update(JSON.stringify(mistakes)).digest("hex");
/** Every source with its mistakes behind switches. What is kept of a run is right while the mistakes are the same. */
export const plugins = [
  {
    name: "planted-mistakes",
    enforce: "pre" as const,
    transform: (code: string, id: string) => plant(code, relative(root, id), mistakes),
    configureVitest: ({ experimental_defineCacheKeyGenerator: keyBy }: VitestPluginContext) =>
      keyBy(() => planted),
  },
];

/**
 * Random runs of the simulators and of properties, and the tables of planted mistakes: minutes of processor time, with a
 * command of their own.
 */
const randomTests = [
  "packages/sim/src/**/*.test.ts",
  "packages/*/src/**/*.property.test.ts",
  "test/*.property.test.ts",
  "test/planted-*.test.ts",
];

/** Parts of `npm test` that try harder by `LEASEHOLD_EFFORT`: see `test/support/effort.ts`. */
export const harderTests = [
  "packages/core/src/journal/journal.test.ts",
  "packages/core/src/server/disk/member-file.test.ts",
  "packages/core/src/raft/chaos.test.ts",
  "packages/core/src/replica/watch-hub.test.ts",
  "packages/core/src/server/backup/damaged-file.test.ts",
  "packages/core/src/server/disk/power-loss.test.ts",
  "packages/core/src/server/api/recipes/recipes.test.ts",
  "packages/core/src/server/wire/first-bytes.test.ts",
  "packages/core/src/server/api/http/fuzz.test.ts",
  "packages/core/src/server/api/http/json-message.test.ts",
  "packages/leasehold/src/delta/paper/conformance.test.ts",
  "packages/leasehold/src/delta/provider/cancellation.test.ts",
  "packages/leasehold/src/flease/overload.test.ts",
  "packages/leasehold/src/flease/tcp/wire/fuzz.test.ts",
];

/**
 * Tests like the fast ones that take seconds each: whole conformance suites, searches of every crash, hostile input. With
 * them `npm test` would take more than 90 seconds. `.ci/run` runs them on each line of Node, too. None replaces modules.
 */
export const thoroughTests = [
  "packages/console/src/top/screen.test.ts",
  "packages/core/src/http2/connection.test.ts",
  "packages/core/src/journal/journal.test.ts",
  "packages/core/src/raft/chaos.test.ts",
  "packages/core/src/replica/concurrent-changes.test.ts",
  "packages/core/src/replica/rights.test.ts",
  "packages/core/src/replica/space.test.ts",
  "packages/core/src/replica/watch-hub.test.ts",
  "packages/core/src/server/auth/passwords.test.ts",
  "packages/core/src/server/backup/hostile-file.test.ts",
  "packages/core/src/server/peers/sockets.test.ts",
  "packages/files/src/disk/crashes.test.ts",
  "packages/files/src/disk/directory-store.test.ts",
  "packages/files/src/node/security.test.ts",
  "packages/files/src/protocol/names-primary.test.ts",
  "packages/files/src/tree/named-files.test.ts",
  "packages/files/src/tree/nodes.test.ts",
  "packages/leasehold/src/common/deadlines.test.ts",
  "packages/leasehold/src/delta/guarded/guarded.test.ts",
  "packages/leasehold/src/delta/paper/conformance.test.ts",
  "packages/leasehold/src/delta/provider/cancellation.test.ts",
  "packages/leasehold/src/delta/provider/conformance.test.ts",
  "packages/leasehold/src/etcd/connection/grpc-connection.test.ts",
  "packages/leasehold/src/etcd/provider.test.ts",
  "packages/leasehold/src/flease/many-members.test.ts",
  "packages/leasehold/src/flease/overload.test.ts",
  "packages/leasehold/src/flease/protocol/register.test.ts",
  "packages/leasehold/src/flease/stores/conformance.test.ts",
  "packages/leasehold/src/flease/tcp/wire/fuzz.test.ts",
  "packages/leasehold/src/runtime/security/certificate.test.ts",
  "packages/leasehold/src/stores/directory/directory.test.ts",
  "packages/leasehold/src/testing/linearizability.test.ts",
];

/** Sockets, timers and directories in real time: a busy machine makes short leases run out. */
const realTimeTests = ["packages/*/src/**/*.realtime.test.ts", "test/realtime/*.test.ts"];

/** Commands, examples and clusters as real processes. */
const processTests = ["packages/*/src/**/*.processes.test.ts", "test/processes/*.test.ts"];

const include = ["packages/*/src/**/*.test.ts", "test/*.test.ts"];
const others = ["**/node_modules/**", ...randomTests, ...realTimeTests, ...processTests];
const exclude = [...others, ...thoroughTests];

/**
 * What replaces a module must load all modules anew, and what replaces the timers must not find those that
 * another file left behind; to do so for each file would take a third of the time.
 */
const replacing = readdirSync(here("./packages"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".test.ts"))
  .map((path) => `packages/${path}`)
  .filter((path) => /\bvi\.(mock|useFakeTimers|stubEnv)\(/.test(readFileSync(here(path), "utf8")));

/** What fails twice is wrong, on a machine that may be busy: of real processes and devices, in hosted CI. */
const retry = process.env["CI"] === undefined ? 0 : 1;

/** Virtual time, or events: nothing here may depend on how busy the machine is, and nothing is tried again. */
const fast = {
  setupFiles: ["test/support/bounded-properties.ts"],
  // One for each processor; vitest would keep one free.
  maxWorkers: "100%",
  // For a machine that is very busy: what hangs is found, too.
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: 60_000 } },
};

/** One file after another. */
const inTurn = { fileParallelism: false, testTimeout: 180_000, hookTimeout: 180_000 };

const effortOr = (usual: string) => process.env["LEASEHOLD_EFFORT"] ?? usual;

const random = {
  // Seeds and virtual time: what fails here fails always. The time limits are for busy machines.
  name: "random",
  include: [...randomTests, ...harderTests],
  setupFiles: ["test/support/bounded-properties.ts"],
  env: { LEASEHOLD_EFFORT: effortOr("10") },
  testTimeout: 300_000,
};

/** All suites. `npm test` runs those whose names begin with `fast`, and `npm run test:slow -- NAME` one of the others. */
export const projects = [
  { ...fast, name: "fast", include, exclude: [...exclude, ...replacing], isolate: false },
  { ...fast, name: "fast-isolated", include: replacing, exclude },
  { ...fast, name: "thorough", include: thoroughTests, isolate: false },
  random,
  {
    // The conformance suite and others over real sockets, directories and timers. A machine that is busy makes leases
    // of a second run out, so one that fails is tried again; what is about safety runs in virtual time.
    name: "realtime",
    include: realTimeTests,
    setupFiles: ["test/support/bounded-properties.ts"],
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    // They spend their time asleep, and at the same disk.
    maxConcurrency: 8,
    fileParallelism: false,
    retry: 2,
  },
  {
    // Commands, examples and clusters as users start them: real processes, several files at once.
    name: "processes",
    include: processTests,
    maxWorkers: "100%",
    // What runs concurrently here spends its time asleep.
    maxConcurrency: 20,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    retry,
  },
  // Real processes that are killed, stopped and cut off: they start servers and measure time.
  { ...inTurn, name: "e2e", include: ["test/e2e/**/*.test.ts"], hookTimeout: 60_000, retry },
  {
    // The packed file with the tools that people build and test with: they are installed, so this needs npm's registry.
    ...inTurn,
    name: "packaged",
    include: ["test/packaged/*.test.ts"],
    testTimeout: 400_000,
    hookTimeout: 400_000,
    maxConcurrency: 2,
    retry,
  },
  // The release before, which is built from its commit, and this one in one cluster.
  { ...inTurn, name: "upgrade", include: ["test/upgrade/*.test.ts"], testTimeout: 600_000 },
  // Real servers and devices, and processes that are killed.
  { ...inTurn, name: "stores", include: ["test/stores/**/*.test.ts"], retry },
  // Fences at real resources, and holders that are stopped.
  { ...inTurn, name: "fence", include: ["test/fence/*.test.ts"] },
  // npm's redlock, and frameworks with their examples, which are installed.
  { ...inTurn, name: "frameworks", include: ["test/frameworks/*.test.ts"] },
  // Debian's Prometheus, which is installed.
  { ...inTurn, name: "observability", include: ["test/observability/*.test.ts"] },
  // Clusters under load, whose processes reread certificates and keys every few seconds.
  { ...inTurn, name: "rotation", include: ["test/rotation/*.test.ts"], testTimeout: 600_000 },
  // What a maintainer runs, in a copy of the repository that is packed again and again.
  { ...inTurn, name: "release", include: ["test/release/*.test.ts"], testTimeout: 400_000 },
  // The page in a real browser.
  { ...inTurn, name: "console", include: ["test/console/*.test.ts"] },
  // Clients in other languages, by their own tests.
  { ...inTurn, name: "clients", include: ["test/clients/*.test.ts"] },
  // The pages as a site, which is built, in a real browser.
  { ...inTurn, name: "site", include: ["test/site/*.test.ts"], hookTimeout: 300_000 },
  // Replicated files as real processes, and clients of WebDAV that others have written.
  // A fresh Debian in a directory, which is installed.
  {
    ...inTurn,
    name: "deploy",
    include: ["test/deploy/*.test.ts"],
    testTimeout: 600_000,
    hookTimeout: 900_000,
  },
  {
    // Others' systems on a core: Debian's Patroni with PostgreSQL.
    ...inTurn,
    name: "adopters",
    include: ["test/adopters/*.test.ts"],
    globalSetup: ["test/adopters/support/install-patroni.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
  { ...inTurn, name: "files", include: ["test/files/**/*.test.ts"] },
  {
    // Servers of the core as real processes, beside real ones of etcd.
    ...inTurn,
    name: "core",
    include: ["test/core/**/*.test.ts"],
    globalSetup: ["test/core/support/install-etcd.ts"],
    testTimeout: 120_000,
  },
  {
    // Clients of etcd against ours and Debian's real etcd in one go, what they say compared.
    ...inTurn,
    name: "etcd",
    include: ["test/etcd/**/*.test.ts"],
    globalSetup: ["test/core/support/install-etcd.ts"],
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
];

/** The forms of patterns that the suites use. */
export function matches(pattern: string, path: string): boolean {
  const form = pattern
    .replace(/[.+]/g, "\\$&")
    .replaceAll("**/", "\n")
    .replaceAll("*", "[^/]*")
    .replaceAll("\n", "(?:.*/)?");
  return new RegExp(`^${form}$`).test(path);
}

/** All test files, by their paths from here. */
export const testFiles = ["packages", "test"]
  .flatMap((folder) =>
    readdirSync(here(folder), { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`),
  )
  .filter((path) => path.endsWith(".test.ts") && !path.includes("node_modules/"));

const isFast = ({ name }: { readonly name: string }) => name.startsWith("fast");
const thoroughFiles = (paths: readonly string[]) =>
  thoroughTests.filter((file) => paths.some((path) => file.startsWith(path)));
const fastFiles = testFiles.filter(
  (path) =>
    include.some((pattern) => matches(pattern, path)) && !others.some((pattern) => matches(pattern, path)),
);

/**
 * Those that this run is about. Without a project and without a path it is the fast ones. A file is run by its suite,
 * once, without the greater effort of the random suite. Of a folder the fast and thorough tests are run, since others may
 * take half an hour, need root or install what they compare with; a folder without such tests is run by its suite.
 */
export function chosen(words: readonly string[]): typeof projects {
  if (words.some((word) => word.startsWith("--project"))) return projects;
  const paths = words.filter((word) => /[/.]/.test(word) && !word.startsWith("-"));
  if (paths.length === 0) return projects.filter(isFast);
  const named = paths.map((path) => path.replace(`${here(".")}/`, "").replace(/^\.\//, ""));
  const slow = named.filter(
    (path) => path.endsWith(".ts") || !fastFiles.some((file) => file.startsWith(path)),
  );
  const slowFiles = testFiles.filter((file) => slow.some((path) => file.includes(path)));
  return projects
    .map((each) =>
      each === random ? { ...random, include: randomTests, env: { LEASEHOLD_EFFORT: effortOr("1") } } : each,
    )
    .map((each) => {
      if (isFast(each)) return each;
      const ours =
        each.name === "thorough"
          ? thoroughFiles(named)
          : slowFiles.filter((file) => each.include.some((pattern) => matches(pattern, file)));
      return { ...each, include: ours };
    })
    .filter((each) => each.include.length > 0);
}

export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // A second run, and the next line of Node, does not transform a thousand modules again.
    experimental: { fsModuleCache: true },
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    projects: chosen(process.argv.slice(2)).map((test, index) => ({
      extends: true as const,
      // Suites that are run together take turns: each has its own number of workers.
      test: { ...test, sequence: { groupOrder: test.name.startsWith("fast") ? 0 : index } },
    })),
  },
});
