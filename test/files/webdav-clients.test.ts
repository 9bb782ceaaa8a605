import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { serveWebdav, type WebdavServer } from "../../packages/files/src/webdav/server.js";
import { MemoryCluster } from "../../packages/leasehold/src/testing/index.js";
import { MemoryFiles } from "../support/memory-files.js";

/** Third-party clients from Debian, against files in memory. */

let files: MemoryFiles;
let server: WebdavServer;
let folder: string;

beforeAll(() => {
  const commands = { cadaver: "cadaver", litmus: "litmus", rclone: "rclone", davfs2: "mount.davfs" };
  const isMissing = (command: string) => spawnSync("which", [command]).status !== 0;
  const missing = Object.entries(commands).flatMap(([name, command]) => (isMissing(command) ? [name] : []));
  if (missing.length > 0) execFileSync("apt-get", ["install", "-y", "-qq", ...missing], { stdio: "ignore" });
}, 180_000);
beforeEach(async () => {
  files = new MemoryFiles();
  server = await serveWebdav(files, new MemoryCluster().open("a"));
  folder = mkdtempSync(join(tmpdir(), "leasehold-clients-"));
});
afterEach(() => server.close());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Asynchronous, since the server is in this process. */
async function run(command: string, args: readonly string[], input = ""): Promise<string> {
  const child = spawn(command, [...args], { cwd: folder, env: { ...process.env, HOME: folder } });
  let output = "";
  child.stdout.on("data", (text) => (output += String(text)));
  child.stderr.on("data", (text) => (output += String(text)));
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: ${code}\n${output}`);
  return output;
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

describe("rclone", () => {
  const rcloneFor = (vendor: string, ...args: string[]) =>
    run("rclone", ["--config", "/dev/null", "--webdav-url", server.url, "--webdav-vendor", vendor, ...args]);
  const rclone = (...args: string[]) => rcloneFor("other", ...args);

  test("syncs by modification times: a second sync copies nothing", async () => {
    mkdirSync(join(folder, "dated/in"), { recursive: true });
    for (const name of ["a", "in/b", "in/empty"]) {
      writeFileSync(join(folder, "dated", name), name.replace("in/empty", ""));
      utimesSync(join(folder, "dated", name), 1_000_000_000.75, 1_000_000_000.75);
    }
    const sync = (from: string, to: string) => rcloneFor("owncloud", "sync", "-v", from, to);
    const copies = /Copied|Updated modification time/;
    expect(await sync("dated", ":webdav:dated")).toMatch(copies);
    expect(await sync("dated", ":webdav:dated")).not.toMatch(copies);
    expect(await sync(":webdav:dated", "dated-back")).toMatch(copies);
    expect(await sync(":webdav:dated", "dated-back")).not.toMatch(copies);
    expect(Math.floor(statSync(join(folder, "dated-back/in/b")).mtimeMs / 1_000)).toBe(1_000_000_000);
    // The same length as before, so that only the time shows the change.
    writeFileSync(join(folder, "dated/in/b"), "in/c");
    expect(await sync("dated", ":webdav:dated")).toMatch(/in\/b: Copied/);
    expect(files.bytesOf("dated/in/b")!.toString()).toBe("in/c");
  });

  test("copies a tree there and back, checks it, moves, and removes it", async () => {
    mkdirSync(join(folder, "tree/in/deep"), { recursive: true });
    const big = Buffer.alloc(9_000_001, "0123456789abcdef!");
    writeFileSync(join(folder, "tree/big.bin"), big);
    writeFileSync(join(folder, "tree/in/deep/ä & b.txt"), "small");
    writeFileSync(join(folder, "tree/empty"), "");
    await rclone("copy", "tree", ":webdav:there");
    expect(await rclone("check", "--download", "tree", ":webdav:there")).toMatch(/0 differences found/);
    expect(await rclone("lsf", "-R", ":webdav:there")).toContain("in/deep/ä & b.txt");
    await rclone("copy", ":webdav:there", "back");
    expect(sha256(readFileSync(join(folder, "back/big.bin")))).toBe(sha256(big));
    expect(await rclone("cat", "--offset", "5000000", "--count", "4", ":webdav:there/big.bin")).toBe(
      big.toString("latin1", 5_000_000, 5_000_004),
    );
    writeFileSync(join(folder, "tree/in/deep/ä & b.txt"), "changed, and longer");
    await rclone("sync", "tree", ":webdav:there");
    expect(files.bytesOf("there/in/deep/ä & b.txt")?.toString()).toBe("changed, and longer");
    await rclone("moveto", ":webdav:there/in", ":webdav:there/out");
    expect(files.paths).toContain("there/out/deep/ä & b.txt");
    await rclone("purge", ":webdav:there");
    expect(files.paths).toEqual([]);
  });
});

describe("litmus", () => {
  test.each(["basic", "copymove", "http", "props", "locks"])("passes all checks of %s", async (part) => {
    // litmus exits with an error if any check fails; the output is examined below.
    const said = await run("sh", ["-c", `TESTS=${part} litmus -k ${server.url}/ || true`]);
    const failed = [...said.matchAll(/\. (\w+)\.+ FAIL/g)].map((match) => match[1]);
    expect(said).toMatch(/of \d+ tests run: \d+ passed/);
    expect(failed).toEqual([]);
  });
});

describe("cadaver", () => {
  const cadaver = (...lines: string[]) => run("cadaver", [server.url], `${lines.join("\n")}\nquit\n`);

  test("makes folders, puts, gets, locks, copies, moves and removes", async () => {
    writeFileSync(join(folder, "a.txt"), "of cadaver");
    const said = await cadaver(
      "mkcol f",
      "cd f",
      "put a.txt",
      "ls",
      "lock a.txt",
      "discover a.txt",
      "put a.txt",
      "unlock a.txt",
      "copy a.txt b.txt",
      "move b.txt c.txt",
      "get c.txt got.txt",
    );
    expect(said).not.toMatch(/failed/i);
    expect(said).toMatch(/a\.txt\s+10/);
    expect(readFileSync(join(folder, "got.txt"), "utf8")).toBe("of cadaver");
    expect(files.paths).toEqual(["f/a.txt", "f/c.txt"]);
    expect(await cadaver("rmcol f")).not.toMatch(/failed/i);
    expect(files.paths).toEqual([]);
  });
});

/** The reason why FUSE cannot mount here, or undefined. */
function unmountable(): string | undefined {
  if (process.getuid?.() !== 0) return "only root mounts what /etc/fstab does not name";
  try {
    accessSync("/dev/fuse");
    return undefined;
  } catch {
    return "the kernel has no /dev/fuse";
  }
}

describe("davfs2", () => {
  const shell = (...commands: string[]) => run("sh", ["-ec", commands.join("\n")]);

  /**
   * On Linux 6.18 davfs2's own folder lists end with EINVAL, on every server, so the test names its files.
   */
  test("mounts a node, and copies, changes, renames and removes files, and folders", async ({ skip }) => {
    skip(unmountable() !== undefined, unmountable());
    const config = join(folder, "davfs2.conf");
    writeFileSync(config, "ask_auth 0\nuse_locks 1\ndelay_upload 0\n");
    mkdirSync(join(folder, "mnt"));
    const mount = ["-o", `conf=${config}`, server.url, join(folder, "mnt")];
    const refused = await run("mount.davfs", mount).catch(({ message }: Error) => message);
    skip(/not permitted|permission denied/i.test(refused), "this machine may not mount anything");
    try {
      const large = Buffer.alloc(30_000_001, "0123456789abcdef!");
      writeFileSync(join(folder, "large"), large);
      await shell(
        "mkdir mnt/d mnt/gone",
        "cp large mnt/d/first",
        "mv mnt/d/first 'mnt/d/ä & b'",
        "cmp large 'mnt/d/ä & b'",
        "echo one > mnt/d/small",
        "echo two >> mnt/d/small",
        "cp mnt/d/small mnt/d/removed",
        "rm mnt/d/removed",
        "rmdir mnt/gone",
        "mv mnt/d mnt/e",
        "umount mnt",
      );
      expect(files.paths).toEqual(["e/small", "e/ä & b"]);
      expect(files.bytesOf("e/small")!.toString()).toBe("one\ntwo\n");
      expect(sha256(files.bytesOf("e/ä & b")!)).toBe(sha256(large));
      // Another user writes meanwhile, through another mount.
      await fetch(`${server.url}/e/small`, { method: "PUT", body: "of another" });
      await run("mount.davfs", mount);
      expect(await shell("cat mnt/e/small")).toBe("of another");
    } finally {
      await run("umount", [join(folder, "mnt")]).catch(() => undefined);
    }
  });
});
