// Compiles src to dist, only when a source is newer than the last build: `npm start` should not wait for nothing.
import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const stamp = join(root, "dist", ".built");

function newestMs(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(path).reduce(
    (newest, name) => Math.max(newest, newestMs(join(path, name))),
    stat.mtimeMs,
  );
}

function builtMs() {
  return statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

const sources = ["src", "tsconfig.json", "package.json"].map((name) => join(root, name));
if (Math.max(...sources.map(newestMs)) > builtMs()) {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const run = spawnSync(process.execPath, [compiler, "-p", join(root, "tsconfig.json")], {
    stdio: "inherit",
  });
  if (run.status !== 0) process.exit(run.status ?? 1);
  chmodSync(join(root, "dist", "cli", "main.js"), 0o755);
  writeFileSync(stamp, "");
}
