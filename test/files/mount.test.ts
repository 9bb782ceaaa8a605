import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  accessSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";

/** The promises of docs/mounting.md, with two mounts of two nodes and Debian's rclone. */

let folder: string;
let up: ChildProcess;
let said = "";
const mounts: { readonly at: string; readonly rclone: ChildProcess }[] = [];

const isMountable = (() => {
  try {
    accessSync("/dev/fuse");
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
})();

/** The flags from docs/mounting.md. */
const flags = ["--vfs-cache-mode=minimal", "--vfs-write-back=0", "--dir-cache-time=1s", "--attr-timeout=0"];

async function mount(name: string, port: number): Promise<string> {
  const at = join(folder, name);
  mkdirSync(at);
  const remote = `:webdav,url="http://127.0.0.1:${port}",vendor=owncloud:`;
  const env = { ...process.env, XDG_CACHE_HOME: join(folder, `${name}-cache`) };
  const rclone = spawn("rclone", ["--config=", "mount", remote, at, ...flags], { env, stdio: "ignore" });
  mounts.push({ at, rclone });
  const isMounted = () => readFileSync("/proc/mounts", "utf8").includes(at);
  while (!isMounted() && rclone.exitCode === null) await sleep(50);
  expect(isMounted()).toBe(true);
  return at;
}

let here: string;
let there: string;
let node: string;

beforeAll(async () => {
  if (!isMountable) return;
  const packages = { rclone: "rclone", fusermount3: "fuse3" };
  const missing = Object.entries(packages).filter(([command]) => spawnSync("which", [command]).status !== 0);
  if (missing.length > 0) {
    const names = missing.map(([, name]) => name);
    execFileSync("apt-get", ["install", "-y", "-qq", ...names], { stdio: "ignore" });
  }
  folder = mkdtempSync(join(tmpdir(), "leasehold-mount-"));
  const [port] = (await freePorts(12)) as [number];
  const words = ["files", "up", "--port", String(port), "--dir", join(folder, "nodes")];
  up = spawn(process.execPath, [join(dist, "cli/main.js"), ...words]);
  up.stdout!.on("data", (text) => (said += String(text)));
  while (!said.includes("each node's files")) await once(up.stdout!, "data");
  const first = Number(/--webdav-url http:\/\/127\.0\.0\.1:(\d+)/.exec(said)![1]);
  node = `http://127.0.0.1:${first}`;
  here = await mount("here", first);
  there = await mount("there", first + 1);
}, 180_000);

afterAll(async () => {
  if (!isMountable) return;
  for (const { at, rclone } of mounts) {
    spawnSync("fusermount3", ["-u", at]);
    if (rclone.exitCode === null) await once(rclone, "exit");
  }
  up.kill("SIGTERM");
  if (up.exitCode === null) await once(up, "exit");
  rmSync(folder, { recursive: true });
});

async function isAtNode(path: string): Promise<boolean> {
  return (await fetch(`${node}/${path}`, { method: "HEAD" })).ok;
}

test.runIf(isMountable)(
  "closing a file that was open for writing waits until the nodes have it",
  async () => {
    writeFileSync(join(here, "stored"), randomBytes(50_000_000));
    expect(await isAtNode("stored")).toBe(true);
  },
);

/** Waits for the greatest age of a folder's list at another mount. */
const seen = () => sleep(1_300);

test.runIf(isMountable)(
  "a file that is closed at one mount is complete at another a second later",
  async () => {
    const large = randomBytes(5_000_001);
    mkdirSync(join(here, "d"));
    writeFileSync(join(here, "d", "large"), large);
    await seen();
    expect(readdirSync(join(there, "d"))).toEqual(["large"]);
    expect(readFileSync(join(there, "d", "large")).equals(large)).toBe(true);
  },
);

test.runIf(isMountable)(
  "a file that is open for writing is invisible at other mounts until it is closed",
  async () => {
    const file = openSync(join(here, "open"), "w");
    writeSync(file, "text");
    await seen();
    expect(existsSync(join(there, "open"))).toBe(false);
    closeSync(file);
    await seen();
    expect(readFileSync(join(there, "open"), "utf8")).toBe("text");
  },
);

test.runIf(isMountable)("a part is written, a rename replaces, and a folder moves as a whole", async () => {
  writeFileSync(join(here, "one"), "0123456789");
  const file = openSync(join(here, "one"), "r+");
  writeSync(file, "ab", 4);
  closeSync(file);
  // A file that is open for reading, too, is sent some time after it is closed.
  await seen();
  writeFileSync(join(here, "two"), "old");
  renameSync(join(here, "one"), join(here, "two"));
  mkdirSync(join(here, "from"));
  writeFileSync(join(here, "from", "x"), "x");
  renameSync(join(here, "from"), join(here, "to"));
  await seen();
  expect(readFileSync(join(there, "two"), "utf8")).toBe("0123ab6789");
  expect(existsSync(join(there, "one"))).toBe(false);
  expect(readFileSync(join(there, "to", "x"), "utf8")).toBe("x");
});

test.runIf(isMountable)("links are refused, and so is the removal of a folder with files", () => {
  writeFileSync(join(here, "target"), "1");
  expect(() => symlinkSync("target", join(here, "symbolic"))).toThrow("EIO");
  expect(() => linkSync(join(here, "target"), join(here, "hard"))).toThrow("EIO");
  mkdirSync(join(here, "full"));
  writeFileSync(join(here, "full", "x"), "1");
  expect(() => rmdirSync(join(here, "full"))).toThrow("ENOTEMPTY");
});

test.runIf(isMountable)(
  "when two mounts close the same file, the last content is there, complete",
  async () => {
    const files = [here, there].map((at) => openSync(join(at, "shared"), "w"));
    writeSync(files[0]!, "first");
    writeSync(files[1]!, "second");
    closeSync(files[0]!);
    closeSync(files[1]!);
    // A mount that has written a file itself notices others' changes to it when its folder is listed.
    const texts = (): string[] =>
      [here, there].map((at) => {
        readdirSync(at);
        return readFileSync(join(at, "shared"), "utf8");
      });
    await expect.poll(texts, { timeout: 10_000, interval: 500 }).toEqual(["second", "second"]);
  },
);
