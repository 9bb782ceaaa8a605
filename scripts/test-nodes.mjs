// Tests on the maintained lines of Node that are not the one at hand: a cluster of members and clients of all of them
// side by side, and then on each the fast tests, and the package: packed once, installed there and used. Needs npm and
// nothing else; the binaries are kept for the next time.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = process.env.LEASEHOLD_NODES_DIR ?? join(root, "node_modules", ".cache", "leasehold-nodes");
const lines = process.argv.length > 2 ? process.argv.slice(2) : ["22", "24"];
const vitest = join(root, "node_modules", "vitest", "vitest.mjs");

function run(command, args, env = {}) {
  process.stdout.write(`\n> ${command} ${args.join(" ")}\n`);
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  if (status !== 0) process.exit(status ?? 1);
}

/** The binary of a line of Node, installed once from the npm package `node`. */
function binaryOf(line) {
  const folder = join(cache, line);
  const binary = join(folder, "node_modules", "node", "bin", "node");
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true });
    run("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", `node@${line}`]);
  }
  return binary;
}

const binaries = [process.execPath, ...lines.map(binaryOf)];
for (const binary of binaries) run(binary, ["--version"]);
run(process.execPath, [vitest, "run", "--config", "vitest.e2e.config.ts", "test/e2e/nodes.test.ts"], {
  LEASEHOLD_NODES: binaries.join(":"),
});
const folder = mkdtempSync(join(tmpdir(), "leasehold-nodes-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const packing = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
const [{ filename }] = JSON.parse(execFileSync("npm", packing, { cwd: root, encoding: "utf8" }));
for (const binary of binaries.slice(1)) {
  run(binary, [vitest, "run"]);
  // What npm and the tools of a project start is this Node as well.
  run(binary, [vitest, "run", "--config", "vitest.packaged.config.ts"], {
    PATH: `${dirname(binary)}${delimiter}${process.env.PATH}`,
    LEASEHOLD_PACKED: join(folder, filename),
  });
}
