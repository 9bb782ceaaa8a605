import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FilesStatus } from "../../packages/files/src/types.js";
import { freePorts } from "../free-ports.js";
import { report } from "../stores/support.js";
import { dist } from "../support/built.js";

/** The time until files are read and put again, after the primary of names was killed or suddenly stopped. */

const main = join(dist, "cli/main.js");
/** The ttl of leases of `files up`. */
const leaseMs = 2_500;
/** The additional wait of another node: one steady clock may be slow by a tenth, and its own fast. */
const clocksMs = (leaseMs * 2) / 9;

let folder: string;
let up: ChildProcess;
let port: number;
let said = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-failover-"));
  [port] = (await freePorts(12)) as [number];
  up = spawn(process.execPath, [main, "files", "up", "--port", String(port), "--dir", join(folder, "nodes")]);
  up.stdout!.on("data", (text) => (said += String(text)));
  while (!said.includes("in a second terminal")) await once(up.stdout!, "data");
});
afterAll(async () => {
  up.kill("SIGTERM");
  if (up.exitCode === null) await once(up, "exit");
  rmSync(folder, { recursive: true });
});

const names = ["a", "b", "c"];
const urlOf = (node: string): string => `http://127.0.0.1:${port + names.indexOf(node)}`;

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

/** Waits until all nodes are there. */
async function primaryOfNames(): Promise<string> {
  for (;;) {
    const ask = async (node: string) => (await fetch(urlOf(node))).json() as Promise<FilesStatus>;
    const found = await Promise.all(names.map(ask)).catch(() => []);
    const has = ({ primaries }: FilesStatus) => primaries.some(({ path }) => path === "names");
    const isWhole = ({ state, peers }: FilesStatus) =>
      state === "serving" && peers.every(({ behind }) => behind === 0);
    const primary = found.find(has);
    if (primary !== undefined && found.length === names.length && found.every(isWhole)) return primary.node;
    await sleep(200);
  }
}

async function done(request: Promise<Response>): Promise<boolean> {
  try {
    const response = await request;
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/** The time after that signal during which one other node serves no requests. */
async function gapAfter(
  signal: "SIGKILL" | "SIGSTOP",
  ask: (url: string) => Promise<Response>,
): Promise<number> {
  const primary = await primaryOfNames();
  const other = names.find((name) => name !== primary)!;
  const pid = pidOf(primary);
  // Wait until that node knows the primary.
  while (!(await done(ask(urlOf(other))))) await sleep(100);
  process.kill(pid, signal);
  const begun = performance.now();
  while (!(await done(ask(urlOf(other))))) await sleep(10);
  const gap = performance.now() - begun;
  if (signal === "SIGSTOP") process.kill(pid, "SIGCONT");
  return gap;
}

const ask = (url: string, more: RequestInit = {}): Promise<Response> =>
  fetch(`${url}/file`, { signal: AbortSignal.timeout(30_000), ...more });
const get = (url: string): Promise<Response> => ask(url);
const put = (url: string): Promise<Response> => ask(url, { method: "PUT", body: "content" });

test.each([
  ["SIGKILL", "reads", get],
  ["SIGSTOP", "reads", get],
  ["SIGSTOP", "puts", put],
] as const)("after %s of the primary, %s are served within the lease and half a second", async (...row) => {
  const [signal, what, call] = row;
  await primaryOfNames();
  expect((await put(urlOf("a"))).ok).toBe(true);
  const gaps: number[] = [];
  for (let round = 0; round < 3; round += 1) gaps.push(await gapAfter(signal, call));
  report(`${what} after ${signal}: ${gaps.map(Math.round).join(", ")} ms`);
  // The median, since one round may be slow on a busy machine. Without the detection of silent nodes, all
  // rounds take 20 s.
  const [, median] = gaps.toSorted((one, other) => one - other);
  expect(median).toBeLessThan(leaseMs + clocksMs + 500);
});
