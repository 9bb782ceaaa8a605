// Tests on the versions of Node that the README lists, except the current one. Without arguments all parts
// run; .ci/run runs them one at a time, each beside other work:
// - install: downloads the binaries, which are kept;
// - cluster: members and clients of all versions, side by side;
// - fast: the tests of `npm test` and the thorough ones on each version;
// - packaged: the package, packed once, with the tools of a project. The new user's clone, BullMQ, Bun and
//   Deno are tried on the current version only.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The newest release of each version line at the time of writing. Pinned, so that a new release of Node
 * breaks no build.
 */
const versions = ["20.20.2", "22.23.3", "24.21.0", "26.10.0"];
const parts = ["install", "cluster", "fast", "packaged"];

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = process.env.LEASEHOLD_NODES_DIR ?? join(root, "node_modules", ".cache", "leasehold-nodes");
const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
const platform = process.platform === "win32" ? "win" : process.platform;
const majorOf = (version) => version.split(".")[0];

const words = process.argv.slice(2);
const chosen = words.filter((word) => parts.includes(word));
const has = (part) => chosen.length === 0 || chosen.includes(part);
const named = words.filter((word) => !parts.includes(word));
const wrong = named.find((word) => !/^\d+(\.\d+)*$/.test(word));
if (wrong !== undefined) {
  process.stderr.write(`${wrong} is no version of Node, and none of ${parts.join(", ")}\n`);
  process.exit(2);
}
const others = versions.filter((version) => majorOf(version) !== majorOf(process.versions.node));
const lines = named.length > 0 ? named : others;

function run(command, args, env = {}) {
  process.stdout.write(`\n> ${command} ${args.join(" ")}\n`);
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  if (status !== 0) process.exit(status ?? 1);
}

function isUsable(binary) {
  return spawnSync(binary, ["--version"]).status === 0;
}

/** Returns the binary of a version, from npm's package for this platform, which runs no install script. */
function binaryOf(line) {
  const folder = join(cache, line);
  const name = `node-${platform}-${process.arch}`;
  const binary = join(
    folder,
    "node_modules",
    name,
    "bin",
    process.platform === "win32" ? "node.exe" : "node",
  );
  for (let tries = 1; tries <= 2 && !isUsable(binary); tries += 1) {
    process.stdout.write(`\nNode ${line} is downloaded${tries === 1 ? "" : " again"}\n`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund"];
    spawnSync("npm", ["install", "--prefix", folder, ...quiet, `${name}@${line}`], { stdio: "inherit" });
  }
  if (isUsable(binary)) return binary;
  process.stderr.write(`Node ${line} cannot be had from npm's package ${name}\n`);
  process.exit(1);
}

const binaries = lines.map(binaryOf);
for (const binary of binaries) run(binary, ["--version"]);
if (has("cluster"))
  run(process.execPath, [vitest, "run", "--project", "e2e", "test/e2e/nodes.test.ts"], {
    LEASEHOLD_NODES: [process.execPath, ...binaries].join(delimiter),
  });
const suites = ["fast", "fast-isolated", "thorough"].flatMap((name) => ["--project", name]);
if (has("fast")) for (const binary of binaries) run(binary, [vitest, "run", ...suites]);
if (has("packaged")) {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-nodes-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const packing = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const [{ filename }] = JSON.parse(
    execFileSync("npm", packing, { cwd: join(root, "packages", "leasehold"), encoding: "utf8" }),
  );
  for (const binary of binaries)
    run(binary, [vitest, "run", "--project", "packaged", "test/packaged/tools.test.ts"], {
      // npm and the tools of a project must start this Node, too.
      PATH: `${dirname(binary)}${delimiter}${process.env.PATH}`,
      LEASEHOLD_PACKED: join(folder, filename),
    });
}
