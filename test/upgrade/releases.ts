import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The previous release, packed from a former commit. */

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Builds are cached: each depends only on its commit. */
const cache = join(root, "node_modules", ".cache", "leasehold-releases");

/**
 * There is no tag yet. The last commit of 26 November 2026 has the packages as they are published now, but
 * does not negotiate a protocol version yet.
 */
export const formerRelease = "8fe1a65a";
/** The formats of files changed on 27 November. This commit has the current ones. */
export const formerFiles = "7443770f";
export const releaseMsMax = 600_000;

export function hasHistory(...commits: readonly string[]): boolean {
  return commits.every((commit) => {
    try {
      execFileSync("git", ["cat-file", "-e", `${commit}^{commit}`], { cwd: root, stdio: "ignore" });
      return true;
    } catch {
      process.stdout.write(`skipped: ${commit} is not in this clone's history\n`);
      return false;
    }
  });
}

/**
 * The folder `dist` of `leasehold` at a commit, packed by npm and unpacked, with its other packages beside
 * it.
 */
export function releaseOf(commit: string): string {
  const place = join(cache, commit);
  const dist = join(place, "node_modules", "leasehold", "dist");
  if (existsSync(dist)) return dist;
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, "building-"));
  try {
    const sources = join(work, "sources");
    const installed = join(work, "installed");
    const packages = buildSources(commit, sources);
    linkTools(installed);
    for (const folder of packages) unpack(pack(join(sources, "packages", folder), work), installed);
    // Another run may have created it first.
    if (!existsSync(dist)) renameSync(installed, place);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return dist;
}

function buildSources(commit: string, to: string): string[] {
  mkdirSync(to);
  const archive = execFileSync("git", ["archive", commit], { cwd: root, maxBuffer: 2 ** 30 });
  execFileSync("tar", ["-x", "-C", to], { input: archive });
  linkTools(to);
  const packages = readdirSync(join(to, "packages"));
  for (const folder of packages)
    symlinkSync(join(to, "packages", folder), join(to, "node_modules", nameOf(join(to, "packages", folder))));
  execFileSync(process.execPath, [join("scripts", "build.mjs")], {
    cwd: to,
    stdio: ["ignore", "ignore", "inherit"],
  });
  return packages;
}

/** Links everything that is installed here except our own packages. */
function linkTools(to: string): void {
  const modules = join(to, "node_modules");
  mkdirSync(join(modules, "@leasehold"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules")))
    if (name !== "leasehold" && name !== "@leasehold" && name !== ".cache")
      symlinkSync(join(root, "node_modules", name), join(modules, name));
}

function pack(folder: string, to: string): string {
  const words = ["pack", "--json", "--ignore-scripts", "--pack-destination", to];
  const [report] = JSON.parse(
    execFileSync("npm", words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
  ) as [{ filename: string }];
  return join(to, report.filename);
}

function unpack(tarball: string, to: string): void {
  const own = mkdtempSync(join(to, "unpacking-"));
  execFileSync("tar", ["-xzf", tarball, "-C", own]);
  renameSync(join(own, "package"), join(to, "node_modules", nameOf(join(own, "package"))));
  rmSync(own, { recursive: true });
}

function nameOf(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name: string }).name;
}
