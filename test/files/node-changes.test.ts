import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FilesStatus, NodesReport } from "../../packages/files/src/types.js";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";

/** Nodes as processes that come and go while files are put and read, and nodes are killed and stopped. */

const main = join(dist, "cli/main.js");
const founders = ["a", "b", "c"];
const others = ["d", "e", "f", "g"];
const all = [...founders, ...others];

let folder: string;
let ports: readonly number[];
const running = new Map<string, ChildProcess>();
/** Nodes that must run: a killed one is started again. */
const wanted = new Set<string>();

const portOf = (group: number, id: string): number => ports[group * all.length + all.indexOf(id)]!;
const at = (group: number, id: string): string => `127.0.0.1:${portOf(group, id)}`;
const urlOf = (id: string): string => `http://${at(0, id)}`;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-changes-"));
  ports = await freePorts(3 * all.length);
});
afterAll(async () => {
  wanted.clear();
  for (const child of running.values()) child.kill("SIGKILL");
  await Promise.all(
    [...running.values()].map((child) => child.exitCode ?? child.signalCode ?? once(child, "exit")),
  );
  rmSync(folder, { recursive: true });
});

function start(id: string): void {
  wanted.add(id);
  const dir = join(folder, id);
  mkdirSync(dir, { recursive: true });
  const joins = others.includes(id);
  const known = joins ? [...founders, id] : founders;
  const args = [
    "files",
    "serve",
    "--id",
    id,
    "--dir",
    dir,
    "--http",
    at(0, id),
    ...(joins ? ["--join"] : []),
  ];
  for (const each of known) args.push("--node", `${each}=${at(1, each)}`);
  for (const each of founders) args.push("--member", `${each}=${at(2, each)}`);
  args.push("--ttl-max", "2500ms", "--max-clock-skew", "50ms", "--rebalance-rate", "20000000");
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (text) => (said = (said + String(text)).slice(-2_000)));
  running.set(id, child);
  child.on("exit", (code, signal) => {
    if (!wanted.has(id) || running.get(id) !== child) return;
    if (signal !== "SIGKILL") process.stderr.write(`node ${id} ended by itself (${code}): ${said}\n`);
    setTimeout(() => wanted.has(id) && start(id), 300);
  });
}

async function node(...args: readonly string[]): Promise<NodesReport> {
  const urls = founders.map(urlOf).join();
  const child = spawn(process.execPath, [main, "files", "node", ...args, "--nodes", urls, "-o", "json"]);
  let text = "";
  let err = "";
  child.stdout.on("data", (bytes) => (text += String(bytes)));
  child.stderr.on("data", (bytes) => (err += String(bytes)));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(err);
  return JSON.parse(text) as NodesReport;
}

/** A failed change is repeated: it may have met a node that was just killed. */
async function changed(...args: readonly string[]): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      await node(...args);
      return;
    } catch (error) {
      if (tries === 10) throw error;
      await sleep(1_000);
    }
  }
}

const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)]!;
const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Clients at nodes that run: each file has one content for ever, which a read has to return. */
class Load {
  readonly acknowledged = new Map<string, string>();
  readonly wrong: string[] = [];
  puts = 0;
  refused = 0;
  reads = 0;
  isOver = false;

  async write(name: string): Promise<void> {
    for (let count = 0; !this.isOver; count += 1) {
      const path = `${name}/${count}`;
      const bytes = randomBytes(1_000 + Math.floor(Math.random() * 600_000));
      const answer = await fetch(`${urlOf(pick([...wanted]))}/${path}`, {
        method: "PUT",
        body: bytes,
        signal: AbortSignal.timeout(30_000),
      }).catch(() => undefined);
      await answer?.arrayBuffer().catch(() => undefined);
      if (answer?.ok === true) {
        this.acknowledged.set(path, hashOf(bytes));
        this.puts += 1;
      } else {
        this.refused += 1;
        // The folder of the first file of a client.
        if (answer?.status === 409)
          await fetch(`${urlOf(pick([...wanted]))}/${name}`, { method: "MKCOL" }).catch(() => undefined);
      }
      await sleep(50);
    }
  }

  async read(): Promise<void> {
    while (!this.isOver) {
      const path = pick([...this.acknowledged.keys()]);
      if (path !== undefined) await this.readOne(path, pick([...wanted]));
      await sleep(20);
    }
  }

  /** True if it was read. What is read must be what was put. */
  async readOne(path: string, id: string): Promise<boolean> {
    try {
      const answer = await fetch(`${urlOf(id)}/${path}`, { signal: AbortSignal.timeout(30_000) });
      const bytes = new Uint8Array(await answer.arrayBuffer());
      if (answer.status === 404) this.wrong.push(`${path} is missing at ${id}`);
      if (!answer.ok) return false;
      if (hashOf(bytes) !== this.acknowledged.get(path)) this.wrong.push(`${path} is another at ${id}`);
      this.reads += 1;
      return true;
    } catch {
      // The node is dead or stopped, or the download broke off.
      return false;
    }
  }
}

async function isWell(id: string): Promise<boolean> {
  try {
    const answer = await fetch(`${urlOf(id)}/`, { signal: AbortSignal.timeout(2_000) });
    return ["serving", "rebuilding"].includes(((await answer.json()) as FilesStatus).state);
  } catch {
    return false;
  }
}

/** Kills one node after another, or stops it for longer than leases last; the next when all are well again. */
async function harm(load: Load, counts: { killed: number; stopped: number }): Promise<void> {
  while (!load.isOver) {
    await sleep(1_000);
    const well = await Promise.all([...wanted].map(isWell));
    const child = running.get(pick([...wanted]));
    if (well.includes(false) || child === undefined) continue;
    await sleep(2_000);
    if (Math.random() < 0.6) {
      counts.killed += 1;
      child.kill("SIGKILL");
    } else {
      counts.stopped += 1;
      child.kill("SIGSTOP");
      await sleep(4_000);
      child.kill("SIGCONT");
    }
  }
}

async function until(what: string, isSo: (report: NodesReport) => boolean): Promise<void> {
  const endMs = performance.now() + 240_000;
  let last: NodesReport | undefined;
  while (performance.now() < endMs) {
    last = await node("ls").catch(() => undefined);
    if (last !== undefined && isSo(last)) return;
    await sleep(1_000);
  }
  throw new Error(`not in time: ${what}; ${JSON.stringify(last)}`);
}

test("from three to seven nodes and back no acknowledged file is lost, and no read is wrong", async () => {
  for (const id of founders) start(id);
  await until("the list of the founders", ({ nodes }) => nodes.length === 3);
  const load = new Load();
  const counts = { killed: 0, stopped: 0 };
  const work = [load.write("x"), load.write("y"), load.read(), load.read(), harm(load, counts)];
  await sleep(5_000);
  for (const id of others) {
    await changed("add", `${id}=${at(1, id)}`, "--zone", id);
    start(id);
  }
  await until(
    "all seven have files",
    ({ nodes }) => nodes.filter(({ contents }) => contents > 2).length === 7,
  );
  await sleep(10_000);
  for (const id of others) await changed("drain", id);
  const isEmpty = ({ nodes }: NodesReport): boolean =>
    nodes.every(({ id, contents }) => founders.includes(id) || contents === 0);
  await until("the four are empty", isEmpty);
  for (const id of others) {
    await changed("remove", id);
    wanted.delete(id);
    running.get(id)?.kill("SIGKILL");
    rmSync(join(folder, id), { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
  load.isOver = true;
  await Promise.all(work);
  expect(load.wrong).toEqual([]);
  const report = await node("ls");
  expect(report.nodes.map(({ id }) => id)).toEqual(founders);
  for (const path of load.acknowledged.keys()) {
    for (let tries = 0; !(await load.readOne(path, pick(founders))); tries += 1) {
      expect([path, tries < 20]).toEqual([path, true]);
      await sleep(500);
    }
  }
  expect(load.wrong).toEqual([]);
  const { puts, refused, reads } = load;
  process.stdout.write(`${JSON.stringify({ puts, refused, reads, ...counts })}\n`);
  expect([puts > 30, reads > 100, counts.killed > 2, counts.stopped > 0]).toEqual([true, true, true, true]);
}, 900_000);
