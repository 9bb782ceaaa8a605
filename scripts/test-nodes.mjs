// Tests on the lines of Node that the README names and that are not the one at hand. Without words all of them; in
// .ci/run one after the other, as each has something else beside it:
// - install: the binaries, which are kept;
// - cluster: members and clients of all lines, side by side;
// - fast: the tests of `npm test` and the thorough ones on each line;
// - packaged: the package, packed once, with the tools of a project. The new user's clone, BullMQ, Bun and Deno are
//   tried on the line at hand only.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The newest of each line when it was tried last: a release of Node turns nothing red by itself. */
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

/** The binary of a line, from npm's package of this platform: it runs no script when it is installed. */
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
      // What npm and the tools of a project start is this Node as well.
      PATH: `${dirname(binary)}${delimiter}${process.env.PATH}`,
      LEASEHOLD_PACKED: join(folder, filename),
    });
}
