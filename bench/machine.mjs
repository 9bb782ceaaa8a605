// Describes the machine and the versions of a run.
import { execFileSync } from "node:child_process";
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { debianVersion } from "./room.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The measured commit, with a plus if files have changed since. */
export function commitOf() {
  const git = (...args) =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  try {
    const changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "bench").trim() !== "";
    return git("rev-parse", "--short", "HEAD").trim() + (changed ? "+" : "");
  } catch {
    return "unknown";
  }
}

/** The time of one write of 4 KiB with its fdatasync below `folder`, µs: median and 99th percentile. */
function diskSync(folder) {
  const file = join(folder, "sync");
  const [bytes, timesUs] = [Buffer.alloc(4_096, 1), []];
  const fd = openSync(file, "w");
  const end = performance.now() + 2_000;
  for (let count = 0; count < 1_000 && performance.now() < end; count += 1) {
    const from = performance.now();
    writeSync(fd, bytes);
    fdatasyncSync(fd);
    timesUs.push((performance.now() - from) * 1_000);
  }
  closeSync(fd);
  rmSync(file);
  timesUs.sort((a, b) => a - b);
  const at = (q) => Math.round(timesUs[Math.floor((timesUs.length - 1) * q)]);
  return { median: at(0.5), late: at(0.99) };
}

export function machineOf(folder, packages) {
  const sync = diskSync(folder);
  return {
    processor: cpus()[0].model,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    diskSyncMedianUs: sync.median,
    diskSync99Us: sync.late,
    ...Object.fromEntries(packages.map((name) => [name, debianVersion(name)])),
  };
}
