// Compiles src and sim to dist, only when a source is newer than the last build: `npm start` should not wait for nothing.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
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

const sources = ["src", "sim", "tsconfig.json", "package.json"].map((name) => join(root, name));
if (Math.max(...sources.map(newestMs)) > builtMs()) {
  // Beside the old build and then swapped, so that a process that starts meanwhile finds the one or the other.
  const fresh = join(root, `dist.${process.pid}.new`);
  const old = join(root, `dist.${process.pid}.old`);
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const options = ["-p", join(root, "tsconfig.json"), "--outDir", fresh];
  const run = spawnSync(process.execPath, [compiler, ...options], { stdio: "inherit" });
  if (run.status !== 0) {
    rmSync(fresh, { recursive: true, force: true });
    process.exit(run.status ?? 1);
  }
  chmodSync(join(fresh, "src", "cli", "main.js"), 0o755);
  writeFileSync(join(fresh, ".built"), "");
  if (existsSync(join(root, "dist"))) renameSync(join(root, "dist"), old);
  renameSync(fresh, join(root, "dist"));
  rmSync(old, { recursive: true, force: true });
}
