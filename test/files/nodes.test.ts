import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FilesStatus } from "../../packages/files/src/types.js";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";

/** `leasehold files up`: three nodes as processes, which are killed, stopped, damaged and emptied. */

let folder: string;
let up: ChildProcess;
let port: number;
let said = "";
const content = randomBytes(30_000_000);

const main = join(dist, "cli/main.js");
const urls = () => [0, 1, 2].map((n) => `http://127.0.0.1:${port + n}`).join();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-nodes-"));
  [port] = (await freePorts(12)) as [number];
  up = spawn(process.execPath, [main, "files", "up", "--port", String(port), "--dir", join(folder, "nodes")]);
  up.stdout!.on("data", (text) => (said += String(text)));
  writeFileSync(join(folder, "dense"), content);
  writeFileSync(join(folder, "sparse"), "begin");
  truncateSync(join(folder, "sparse"), 400_000_000);
  while (!said.includes("in a second terminal")) await once(up.stdout!, "data");
});
afterAll(async () => {
  up.kill("SIGTERM");
  if (up.exitCode === null) await once(up, "exit");
  rmSync(folder, { recursive: true });
});

async function leasehold(...args: readonly string[]) {
  const child = spawn(process.execPath, [main, "files", ...args, "--nodes", urls()], { cwd: folder });
  let text = "";
  let err = "";
  child.stdout.on("data", (bytes) => (text += String(bytes)));
  child.stderr.on("data", (bytes) => (err += String(bytes)));
  const [code] = (await once(child, "close")) as [number];
  return { code, text, err };
}

interface Found {
  readonly status?: FilesStatus;
}

async function statuses(): Promise<readonly Found[]> {
  return JSON.parse((await leasehold("status", "-o", "json")).text) as Found[];
}

/** The process id of a node. */
function pidOf(node: string): number {
  const pid = readdirSync("/proc").find((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8");
      return words.includes(`--id\0${node}\0`) && words.includes(folder);
    } catch {
      return false;
    }
  });
  return Number(pid);
}

async function same(path: string): Promise<boolean> {
  const { code, err } = await leasehold("get", path, "back");
  if (code !== 0) throw new Error(err);
  return readFileSync(join(folder, "back")).equals(content);
}

/** Waits for a primary of names, and returns its node. */
async function primaryOfNames(): Promise<string> {
  for (;;) {
    const found = await statuses();
    const has = ({ status }: Found) => status?.primaries.some(({ path }) => path === "names") === true;
    const node = found.find(has)?.status?.node;
    if (node !== undefined) return node;
  }
}

function isWhole({ state, peers }: FilesStatus): boolean {
  return state === "serving" && peers.every(({ behind }) => behind === 0);
}

describe("three nodes", () => {
  test("keep a file if the primary of names is killed while it is put", async () => {
    const put = leasehold("put", "dense", "killed");
    process.kill(pidOf(await primaryOfNames()), "SIGKILL");
    expect((await put).code).toBe(0);
    expect(await same("killed")).toBe(true);
  });

  test("continue when the primary of names is stopped, which shows nothing outdated when it resumes", async () => {
    await leasehold("put", "dense", "stopped");
    const pid = pidOf(await primaryOfNames());
    process.kill(pid, "SIGSTOP");
    try {
      writeFileSync(join(folder, "new"), "new");
      expect((await leasehold("put", "new", "stopped")).code).toBe(0);
    } finally {
      process.kill(pid, "SIGCONT");
    }
    expect((await leasehold("cat", "stopped")).text).toBe("new");
  });

  test("store holes without using space", async () => {
    expect((await leasehold("put", "sparse")).code).toBe(0);
    const { code } = await leasehold("get", "sparse", "sparse.back");
    expect(code).toBe(0);
    const back = readFileSync(join(folder, "sparse.back"));
    expect([
      back.length,
      back.toString("latin1", 0, 5),
      back.subarray(5).every((byte) => byte === 0),
    ]).toEqual([400_000_000, "begin", true]);
  });

  test("fill an empty node that replaced one, which can then replace another", async () => {
    await leasehold("put", "dense", "filled");
    await leasehold("put", "dense", "removed");
    await leasehold("rm", "removed");
    rmSync(join(folder, "nodes/c"), { recursive: true });
    process.kill(pidOf("c"), "SIGKILL");
    await expect
      .poll(
        async () => {
          const found = await statuses();
          return found.every(({ status }) => status !== undefined && isWhole(status));
        },
        { timeout: 60_000, interval: 1_000 },
      )
      .toBe(true);
    process.kill(pidOf("a"), "SIGKILL");
    expect(await same("filled")).toBe(true);
  });

  test("that are all killed at once recover everything that was acknowledged", async () => {
    await leasehold("put", "dense", "all");
    for (const node of ["a", "b", "c"]) process.kill(pidOf(node), "SIGKILL");
    expect(await same("all")).toBe(true);
  });
});
