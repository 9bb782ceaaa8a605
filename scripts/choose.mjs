// One npm script for each family of commands: `npm run bench` lists the commands, and `npm run bench -- core`
// runs one of them with the arguments that follow.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

const build = ["node", "scripts/build.mjs"];
const storePackages = ["node", "scripts/store-packages.mjs"];
const toolsOf = (folder) => ["npm", "ci", "--silent", "--prefix", folder];

/** A suite of `vitest.config.ts`. */
const suite = (name, says, more = {}) => ({
  says,
  before: [build, ...(more.before ?? [])],
  run: ["node", "node_modules/vitest/vitest.mjs", "run", "--project", name],
  env: more.env,
});

const measured = (file, says, before = [], flags = []) => ({
  says,
  before: [build, ...before],
  run: ["node", ...flags, `bench/${file}.mjs`],
});

const collected = ["--expose-gc"];

const families = {
  "test:slow": {
    thorough: suite("thorough", "tests like the fast ones that take seconds each: half a minute to a minute"),
    processes: suite("processes", "commands, examples and clusters as real processes"),
    realtime: suite("realtime", "the conformance suite and others over real sockets, directories and timers"),
    random: suite("random", "random runs of the simulators and harder random tests, with a new seed", {
      env: { LEASEHOLD_SEED: process.env.LEASEHOLD_SEED ?? "random" },
    }),
    e2e: suite("e2e", "real processes, killed, stopped and cut off"),
    packaged: suite(
      "packaged",
      "the packed files with bundlers, test runners and TypeScript; a new user's first hour",
    ),
    nodes: {
      says: "the other lines of Node, side by side and each alone; [24] one line, [fast] one part",
      before: [build],
      run: ["node", "scripts/test-nodes.mjs"],
    },
    busy: {
      says: "the fast tests ten times on a machine that is busy; [3] three times",
      before: [build],
      run: ["node", "scripts/test-busy.mjs"],
    },
    stores: suite(
      "stores",
      "leases on real stores and disks, as root on Debian, whose packages it installs",
      {
        before: [storePackages],
      },
    ),
    fence: suite(
      "fence",
      "fences at real databases and folders, with holders that are stopped, as `stores`",
      {
        // Another line of Node, for `node:sqlite`.
        before: [
          storePackages,
          toolsOf("test/fence/tools"),
          ["node", "scripts/test-nodes.mjs", "install", "24.21.0"],
        ],
      },
    ),
    core: suite("core", "servers of the core as real processes, beside real etcd"),
    etcd: suite("etcd", "clients of etcd against the core and real etcd, the answers compared"),
    upgrade: suite("upgrade", "the release before and this one in one cluster, upgraded and rolled back"),
    adopters: suite("adopters", "Debian's Patroni with PostgreSQL on a core, as root"),
    frameworks: suite(
      "frameworks",
      "npm's redlock beside ours, examples with others' frameworks, as `stores`",
      {
        before: [storePackages],
      },
    ),
    observability: suite("observability", "the alert rules, by Debian's promtool"),
    release: suite("release", "npm run release in a copy of the repository, up to a registry of its own"),
    rotation: suite("rotation", "authorities and cluster keys changed with clusters under load"),
    deploy: suite("deploy", "units, the Debian package, the image's steps and manifests; as root on Debian"),
    site: suite("site", "the pages as a site, in Debian's chromium", { before: [toolsOf("site")] }),
    console: suite("console", "the console's page in Debian's chromium"),
    clients: suite("clients", "clients in Go and Python, by their own tests"),
    files: suite("files", "replicated files as real processes, and clients of WebDAV"),
    report: {
      says: "the charts of the report, drawn from invented rows",
      before: [toolsOf("bench/report")],
      run: ["node", "--test", "bench/report"],
    },
  },
  planted: {
    sim: {
      says: "mistakes that a simulator or the explorer has to find",
      run: ["node", "scripts/planted.mjs", "table"],
    },
    tests: {
      says: "mistakes that a test beside the product has to catch; [part of a name]",
      run: ["node", "scripts/planted-tests.mjs"],
    },
    servers: {
      says: "mistakes in answers of the core's servers, which real etcd shows; [part of a name]",
      run: ["node", "scripts/planted-servers.mjs"],
    },
  },
  bench: {
    compare: measured("run", "Leasehold beside Redlock, etcd, ZooKeeper and the bare exchange; [--help]"),
    guard: measured("guard", "fails if Leasehold has lost a quarter against bench/guard.json; [--write]"),
    metrics: measured("metrics-cost", "processor time that metrics take of an acquisition among peers"),
    report: {
      says: "draws the charts of docs/performance.md and bench/results/report.html",
      before: [toolsOf("bench/report")],
      run: ["node", "bench/report/report.mjs"],
    },
    core: measured("core", "the core beside etcd; [--one-core]", [toolsOf("bench/systems")]),
    storage: measured("storage", "leases on stores", [storePackages], collected),
    fences: measured("fences", "writes with and without each fence; [ROUNDS] [SECONDS]", [
      storePackages,
      toolsOf("test/fence/tools"),
    ]),
    files: measured("files", "replicated files"),
    cells: measured("cells", "many members, in cells; [cost]"),
    gateway: measured("gateway", "sessions, watches and acquisitions at a gateway; [SESSIONS] [WATCHES]"),
    waiting: measured("waiting", "many that wait for one resource"),
    listing: measured("listing", "lists of many leases", [], collected),
    size: measured("size", "what a held lease costs, for `leasehold size`; root"),
    million: measured("million", "a million leases"),
    overload: measured("overload", "more clients than members can serve"),
    soak: measured("soak", "memory over a long run", [], collected),
  },
  generate: {
    site: {
      says: "the pages as a site, in packages/docs/pages",
      before: [build, toolsOf("site")],
      run: ["npm", "exec", "--prefix", "site", "--", "vitepress", "build", "site"],
    },
    api: {
      says: "docs/api from the types; [--check]",
      before: [build],
      run: ["node", "scripts/api-reference.mjs"],
    },
    metrics: {
      says: "docs/metrics.md from the catalogue of metrics",
      run: ["node", "node_modules/vitest/vitest.mjs", "run", "test/metrics-page.test.ts", "--update"],
    },
    logs: {
      says: "docs/log-events.md from the catalogues of log events",
      run: ["node", "node_modules/vitest/vitest.mjs", "run", "test/log-events-page.test.ts", "--update"],
    },
    config: {
      says: "docs/configuration.md and the JSON Schema from the table of settings",
      run: ["node", "node_modules/vitest/vitest.mjs", "run", "test/configuration.test.ts", "--update"],
    },
    figures: { says: "the measured figures in the pages; [--check]", run: ["node", "scripts/figures.mjs"] },
    proto: { says: "the code of the core's protocol buffers", run: ["node", "scripts/generate-protos.mjs"] },
  },
};

function run([command, ...words], env = {}) {
  const program = command === "node" ? process.execPath : command;
  const { status } = spawnSync(program, words, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  if (status !== 0) process.exit(status ?? 1);
}

const [familyName = "", name, ...words] = process.argv.slice(2);
const family = families[familyName] ?? {};
const choice = Object.hasOwn(family, name ?? "") ? family[name] : undefined;
if (choice === undefined) {
  const widest = Math.max(...Object.keys(family).map((each) => each.length));
  const lines = Object.entries(family).map(([each, { says }]) => `  ${each.padEnd(widest)}  ${says}\n`);
  const unknown = name === undefined ? "" : `there is no ${name}\n\n`;
  process.stderr.write(`${unknown}npm run ${familyName} -- NAME [words], with one of\n\n${lines.join("")}`);
  process.exit(2);
}
for (const command of choice.before ?? []) run(command);
run([...choice.run, ...words], choice.env);
