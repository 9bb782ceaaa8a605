import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FilesStatus, NodesReport } from "../../packages/files/src/types.js";
import { type Place, Site } from "../blackbox/site.js";
import { dist } from "../support/built.js";
import { Authority } from "../support/pki.js";
import type { TlsFiles } from "../../packages/leasehold/src/runtime/options.js";

/**
 * Nodes are added and removed while files are put and read, and while nodes are killed, stopped and
 * disconnected. Each node is a process in a network namespace of its own.
 */

const main = join(dist, "cli/main.js");
const founders = ["a", "b", "c"];
const others = ["d", "e", "f", "g"];
const all = [...founders, ...others];

const httpPort = 7_000;
const nodePort = 7_001;
const memberPort = 7_002;

let folder: string;
let site: Site;
let agent: Agent;
const authority = new Authority();
const user = "me:secret";
const certificates = new Map<string, TlsFiles>();
const places = new Map<string, Place>();
const running = new Map<string, ChildProcess>();
/** Nodes that must run: a killed one is restarted. */
const wanted = new Set<string>();

const at = (port: number, id: string): string => `${places.get(id)!.address}:${port}`;
const urlOf = (id: string): string => `https://${at(httpPort, id)}`;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-changes-"));
  site = new Site();
  agent = new Agent({ ca: readFileSync(authority.caFile), keepAlive: false });
  for (const id of all) {
    const place = site.addPlace();
    places.set(id, place);
    const names = `subjectAltName = URI:leasehold://leasehold/member/${id}, IP:${place.address}`;
    certificates.set(id, authority.issue([names]));
  }
});
afterAll(async () => {
  wanted.clear();
  for (const child of running.values()) child.kill("SIGKILL");
  await Promise.all(
    [...running.values()].map((child) => child.exitCode ?? child.signalCode ?? once(child, "exit")),
  );
  agent.destroy();
  authority.remove();
  site.remove();
  rmSync(folder, { recursive: true });
});

/**
 * The traffic that a disconnected node loses. Its clients still reach it, so it could give them outdated
 * answers.
 */
const cuts = {
  "all traffic": ["input", "output"],
  "incoming traffic": ["input"],
  "outgoing traffic": ["output"],
} as const;

function cut(id: string, kind: keyof typeof cuts): void {
  const ports = `{ ${nodePort}, ${memberPort} }`;
  const chains = cuts[kind].map(
    (hook) =>
      `chain ${hook} { type filter hook ${hook} priority 0; tcp dport ${ports} drop; tcp sport ${ports} drop; }`,
  );
  nft(id, `table inet cut {\n${chains.join("\n")}\n}\n`);
}

function nft(id: string, rules: string): void {
  execFileSync("ip", ["netns", "exec", places.get(id)!.namespace, "nft", "-f", "-"], { input: rules });
}

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
    at(httpPort, id),
    ...(joins ? ["--join"] : []),
  ];
  for (const each of known) args.push("--node", `${each}=${at(nodePort, each)}`);
  for (const each of founders) args.push("--member", `${each}=${at(memberPort, each)}`);
  const { ca, cert, key } = certificates.get(id)!;
  args.push("--tls-ca", ca, "--tls-cert", cert, "--tls-key", key);
  args.push("--ttl-max", "2500ms", "--max-clock-skew", "50ms", "--rebalance-rate", "20000000");
  const inside = ["netns", "exec", places.get(id)!.namespace, process.execPath, main];
  const env = { ...process.env, LEASEHOLD_FILES_USER: user };
  const child = spawn("ip", [...inside, ...args], { env, stdio: ["ignore", "ignore", "pipe"] });
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
  const shared = ["--nodes", urls, "--tls-ca", authority.caFile, "-o", "json"];
  const env = { ...process.env, LEASEHOLD_FILES_USER: user };
  const child = spawn(process.execPath, [main, "files", "node", ...args, ...shared], { env });
  let text = "";
  let err = "";
  child.stdout.on("data", (bytes) => (text += String(bytes)));
  child.stderr.on("data", (bytes) => (err += String(bytes)));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(err);
  return JSON.parse(text) as NodesReport;
}

/** Retries a failed change, since it may have met a node that was just killed. */
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

/** Sends one request to a node. Returns undefined if the answer does not arrive completely. */
async function ask(
  id: string,
  method: string,
  path: string,
  body?: Uint8Array,
  timeoutMs = 30_000,
): Promise<{ status: number; ok: boolean; bytes: Buffer } | undefined> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const asked = request(`${urlOf(id)}/${path}`, { method, auth: user, agent, signal }).end(body);
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    const bytes = await buffer(answer);
    const status = answer.statusCode!;
    return { status, ok: status >= 200 && status < 300, bytes };
  } catch {
    return undefined;
  }
}

const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)]!;
const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Clients of running nodes. Each file has one content for ever, which each read must return. */
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
      const answer = await ask(pick([...wanted]), "PUT", path, bytes);
      if (answer?.ok === true) {
        this.acknowledged.set(path, hashOf(bytes));
        this.puts += 1;
      } else {
        this.refused += 1;
        // Creates the folder for a client's first file.
        if (answer?.status === 409) await ask(pick([...wanted]), "MKCOL", name);
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

  /** Returns true if the file was read. Its content must be that which was put. */
  async readOne(path: string, id: string): Promise<boolean> {
    const answer = await ask(id, "GET", path);
    if (answer?.status === 404) this.wrong.push(`${path} is missing at ${id}`);
    if (answer?.ok !== true) return false;
    if (hashOf(answer.bytes) !== this.acknowledged.get(path)) this.wrong.push(`${path} is another at ${id}`);
    this.reads += 1;
    return true;
  }
}

async function isWell(id: string): Promise<boolean> {
  const answer = await ask(id, "GET", "", undefined, 2_000);
  if (answer?.ok !== true) return false;
  return ["serving", "rebuilding"].includes((JSON.parse(answer.bytes.toString()) as FilesStatus).state);
}

interface Harm {
  killed: number;
  stopped: number;
  cut: number;
}

/**
 * Kills, stops or disconnects one node after another, for longer than leases last. Waits in between until all
 * nodes are healthy.
 */
async function harm(load: Load, counts: Harm): Promise<void> {
  const kinds = ["kill", "cut", "stop", "cut", "kill"] as const;
  let turn = 0;
  while (!load.isOver) {
    await sleep(1_000);
    const well = await Promise.all([...wanted].map(isWell));
    const id = pick([...wanted]);
    const child = running.get(id);
    if (well.includes(false) || child === undefined) continue;
    await sleep(2_000);
    const kind = kinds[turn % kinds.length];
    turn += 1;
    if (kind === "kill") {
      counts.killed += 1;
      child.kill("SIGKILL");
    } else if (kind === "stop") {
      counts.stopped += 1;
      child.kill("SIGSTOP");
      await sleep(4_000);
      child.kill("SIGCONT");
    } else {
      counts.cut += 1;
      cut(id, pick(Object.keys(cuts) as (keyof typeof cuts)[]));
      await sleep(4_000);
      nft(id, "delete table inet cut");
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

test("from three to seven nodes and back, no acknowledged file is lost and no read is wrong", async () => {
  for (const id of founders) start(id);
  await until("the list of the founders", ({ nodes }) => nodes.length === 3);
  const load = new Load();
  const counts: Harm = { killed: 0, stopped: 0, cut: 0 };
  const work = [load.write("x"), load.write("y"), load.read(), load.read(), harm(load, counts)];
  await sleep(5_000);
  for (const id of others) {
    await changed("add", `${id}=${at(nodePort, id)}`, "--zone", id);
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
  expect(report.nodes.map(({ id }) => id).sort()).toEqual(founders);
  for (const path of load.acknowledged.keys()) {
    for (let tries = 0; !(await load.readOne(path, pick(founders))); tries += 1) {
      expect([path, tries < 20]).toEqual([path, true]);
      await sleep(500);
    }
  }
  expect(load.wrong).toEqual([]);
  const { puts, refused, reads } = load;
  process.stdout.write(`${JSON.stringify({ puts, refused, reads, ...counts })}\n`);
  expect([puts > 30, reads > 100, counts.killed > 2, counts.stopped > 0, counts.cut > 1]).toEqual([
    true,
    true,
    true,
    true,
    true,
  ]);
}, 900_000);
