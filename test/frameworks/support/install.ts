import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const cache = fileURLToPath(new URL("../../../node_modules/.cache/leasehold-frameworks", import.meta.url));
const quiet = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--no-package-lock"];

/** A project with this `package.json` and its dependencies installed, in a folder that later runs reuse. */
export function installed(name: string, manifest: object): string {
  const folder = join(cache, name);
  const text = JSON.stringify(manifest);
  const stamp = join(folder, "installed.json");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === text) return folder;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), text);
  execFileSync("npm", ["install", ...quiet], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  writeFileSync(stamp, text);
  return folder;
}

/** The URL of a file in a package that is installed there. */
export function moduleIn(folder: string, path: string): string {
  return pathToFileURL(join(folder, "node_modules", path)).href;
}
