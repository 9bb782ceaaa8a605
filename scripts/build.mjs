// Compiles src and sim to dist, only when a source is newer than the last build: `npm start` should not wait for nothing.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
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

/** Removes declarations that those of the exports do not lead to: nobody can import them, and they are nine of ten. */
function pruneDeclarations(folder) {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const reached = new Set();
  const next = Object.values(exports).flatMap(({ types }) =>
    types === undefined ? [] : [join(folder, types.replace(/^\.\/dist\//, ""))],
  );
  for (let path = next.pop(); path !== undefined; path = next.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    for (const [, name] of readFileSync(path, "utf8").matchAll(/(?:from |import\(|import )"(\.[^"]+)\.js"/g))
      next.push(join(dirname(path), `${name}.d.ts`));
  }
  const all = readdirSync(folder, { recursive: true }).map((name) => join(folder, name));
  for (const path of all) if (path.endsWith(".d.ts") && !reached.has(path)) rmSync(path);
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
  pruneDeclarations(fresh);
  chmodSync(join(fresh, "src", "cli", "main.js"), 0o755);
  writeFileSync(join(fresh, ".built"), "");
  if (existsSync(join(root, "dist"))) renameSync(join(root, "dist"), old);
  renameSync(fresh, join(root, "dist"));
  rmSync(old, { recursive: true, force: true });
}
