import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { open } from "leasehold";
import type { Lease, Leases, OpenOptions, TlsFiles } from "leasehold";
import { freePorts } from "../free-ports.js";
import { type Running, leasehold } from "../support/built.js";
import { asText as textsOf } from "../support/pki.js";

/**
 * `leasehold cert rotate` with clusters under load. After each step one machine gets the new files first and
 * its processes restart with them, while the others still have the old ones. At the end all restart, one
 * machine after the other. Held leases stay held, programs that contend, put or reconnect meet no error, and
 * the old credentials are refused.
 */

const ids = ["a", "b", "c"] as const;
type Id = (typeof ids)[number];
/** The machine of the programs that acquire leases. */
const programs = "programs";
const steps = ["trust", "switch", "finish"] as const;

/** Members and nodes check their files every 5 s, and servers of a core every 10 s. */
const rereadMs = 11_000;
const user = "me:secret";

let folder: string;
let ports: readonly number[];
const running = new Map<string, Running>();

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-rotation-"));
  ports = await freePorts(18);
});
afterEach(async () => {
  const all = [...running.values()];
  for (const { process: child } of all) child.kill("SIGKILL");
  await Promise.all(all.map(({ finished }) => finished));
  running.clear();
  rmSync(folder, { recursive: true });
});

const groups = ["peer", "node", "nodeMember", "http", "coreClient", "corePeer"] as const;
const at = (group: (typeof groups)[number], id: Id): string =>
  `127.0.0.1:${ports[groups.indexOf(group) * ids.length + ids.indexOf(id)]}`;
/** The path of a file on a machine. */
const on = (machine: string, file: string): string => join(folder, machine, file);

async function cert(...words: string[]): Promise<void> {
  const { code, stderr } = await leasehold(["cert", ...words], { cwd: folder }).finished;
  expect({ code, stderr, words }).toEqual({ code: 0, stderr: "", words });
}

/** Copies the files that every machine may have, while they are in use, as an operator does. */
function deploy(machine: string, sources: readonly string[]): void {
  for (const source of sources) {
    const from = join(folder, source);
    const isFolder = !source.endsWith(".key");
    mkdirSync(on(machine, isFolder ? source : "."), { recursive: true });
    const names = isFolder ? readdirSync(from).filter((name) => !/^ca(?:-.*)?\.key$/.test(name)) : [""];
    for (const name of names) {
      const beside = on(machine, "copied");
      copyFileSync(join(from, name), beside);
      renameSync(beside, join(on(machine, source), name));
    }
  }
}

/** Starts a server of a machine, and resolves when its output matches `says`. */
async function start(name: string, words: readonly string[], says: RegExp, env = {}): Promise<void> {
  const child = leasehold(words, { env: { ...process.env, ...env } });
  running.set(name, child);
  await expect.poll(() => child.stdout() + child.stderr(), { timeout: 120_000 }).toMatch(says);
}

type Flags = (id: Id) => readonly string[];
/** Short, because a restarted member waits this long, but long enough for a busy machine. */
const shortLeases = ["--ttl-max", "10s", "--max-clock-skew", "50ms"];

function startPeer(id: Id, flags: Flags): Promise<void> {
  const members = ids.flatMap((each) => ["--member", `${each}=${at("peer", each)}`]);
  return start(`peer ${id}`, ["peer", "--id", id, ...members, ...shortLeases, ...flags(id)], /is ready/);
}

function startNode(id: Id, flags: Flags): Promise<void> {
  const lists = ids.flatMap((each) => [
    "--node",
    `${each}=${at("node", each)}`,
    "--member",
    `${each}=${at("nodeMember", each)}`,
  ]);
  mkdirSync(on(id, "disk"), { recursive: true });
  const own = ["--id", id, "--dir", on(id, "disk"), "--http", at("http", id)];
  const words = ["files", "serve", ...own, ...lists, ...shortLeases, ...flags(id)];
  return start(`node ${id}`, words, /serves/, { LEASEHOLD_FILES_USER: user });
}

function startCore(id: Id): Promise<void> {
  const initial = ids.map((each) => `${each}=https://${at("corePeer", each)}`).join();
  const [client, peer] = [`https://${at("coreClient", id)}`, `https://${at("corePeer", id)}`];
  const tls = (prefix: string, authority: string) => [
    `--${prefix}cert-file`,
    on(id, `${authority}/s-${id}.pem`),
    `--${prefix}key-file`,
    on(id, `${authority}/s-${id}.key`),
    `--${prefix}trusted-ca-file`,
    on(id, `${authority}/ca.pem`),
    `--${prefix}client-cert-auth`,
  ];
  const urls = ["--listen-client-urls", client, "--advertise-client-urls", client];
  urls.push("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", initial);
  const words = ["core", "--name", id, "--data-dir", on(id, "core"), ...urls];
  return start(
    `core ${id}`,
    [...words, ...tls("", "clients"), ...tls("peer-", "servers")],
    /ready|serv|listen/i,
  );
}

async function stop(name: string): Promise<void> {
  const { process: child } = running.get(name)!;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}

/** Waiting is not fair: on a busy machine one of two contenders waited 30 s for the lease. */
const contention = { wait: "2m" };

/** Programs that use the cluster throughout the test. */
class Load {
  readonly errors: string[] = [];
  readonly counts = { contended: 0, reopened: 0, put: 0 };
  readonly #held: Lease[] = [];
  readonly #opened: Leases[] = [];
  readonly #loops: Promise<void>[] = [];
  #isOver = false;

  /** Starts a program that holds leases, one that contends for others, and programs that come and go. */
  async use(what: string, opened: (asText: boolean) => Promise<Leases>): Promise<void> {
    const leases = await opened(false);
    this.#opened.push(leases);
    leases.on("lost", ({ lease, error }) =>
      this.errors.push(`${what}: lost ${lease.resource}: ${error.message}`),
    );
    for (const name of ["x", "y", "z"]) this.#held.push(await leases.acquire(`held/${name}`));
    this.#repeat(`${what}, contending`, async () => {
      const lease = await leases.acquire("contended", contention);
      await sleep(20);
      await lease.release();
      this.counts.contended += 1;
    });
    this.#repeat(`${what}, opened anew`, async () => {
      // As text, read in one step: read later by path, a certificate and its key could be of different
      // copies.
      const anew = await opened(true);
      try {
        const lease = await anew.acquire("contended", contention);
        await lease.release();
      } finally {
        await anew.close();
      }
      this.counts.reopened += 1;
    });
  }

  /** Starts a program that puts one file after another. */
  put(command: (words: readonly string[]) => Promise<string>): void {
    this.#repeat("files", async () => {
      await command(["put", join(folder, "content"), `put/${this.counts.put}`]);
      this.counts.put += 1;
    });
  }

  #repeat(what: string, turn: () => Promise<void>): void {
    const loop = async () => {
      while (!this.#isOver) {
        await turn().catch((error: Error) => this.errors.push(`${what}: ${error.message}`));
        await sleep(200);
      }
    };
    this.#loops.push(loop());
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
    for (const lease of this.#held) lease.assertHeld();
    await Promise.all(this.#opened.map((leases) => leases.close()));
  }
}

const peerUrls = () => ids.map((id) => `flease://${at("peer", id)}`);
const coreUrl = () => `core://${ids.map((id) => at("coreClient", id)).join()}`;

/** Connects to one member. Returns "connected" or the code of the refusal. */
async function connecting(url: string, options: OpenOptions): Promise<string> {
  try {
    await (await open(url, { ...options, timeout: "4s" })).close();
    return "connected";
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

/** Performs the steps; after each, the machines get the new files one after the other. */
async function rotate(
  sources: readonly string[],
  load: Load,
  restarted: (id: Id) => readonly (readonly [string, () => Promise<void>])[],
): Promise<void> {
  for (const [index, step] of steps.entries()) {
    for (const source of sources.filter((each) => each !== "clients.key")) await cert("rotate", source, step);
    // Each role has a file of its own.
    if (sources.includes("cluster.key")) writeClientKeys();
    const first = ids[index]!;
    deploy(first, sources);
    await restart(restarted(first));
    for (const machine of [programs, ...ids.filter((id) => id !== first)]) {
      deploy(machine, sources);
      await sleep(1_000);
    }
    await sleep(rereadMs);
    expect([step, load.errors]).toEqual([step, []]);
  }
  // End connections that began before the last step, so that running programs must reconnect with the new
  // files.
  for (const id of ids) await restart(restarted(id));
}

async function restart(processes: readonly (readonly [string, () => Promise<void>])[]): Promise<void> {
  await Promise.all(
    processes.map(async ([name, startAgain]) => {
      await stop(name);
      await startAgain();
    }),
  );
}

function writeClientKeys(): void {
  const lines = readFileSync(join(folder, "cluster.key"), "utf8").split("\n");
  const ofClients = lines.filter((line) => line.startsWith("client"));
  writeFileSync(join(folder, "clients.key"), `${ofClients.join("\n")}\n`);
}

describe("nothing is lost while", () => {
  test("the CAs of members, nodes of files and a core are changed", async () => {
    for (const name of ["pki", "clients", "servers"]) await cert("authority", name);
    for (const id of ids) {
      await cert("member", "pki", id, "--host", "127.0.0.1");
      await cert("core-server", "clients", `s-${id}`, "--host", "127.0.0.1");
      await cert("core-peer", "servers", `s-${id}`, "--host", "127.0.0.1");
    }
    await cert("client", "pki");
    await cert("core-user", "clients", "program");
    const sources = ["pki", "clients", "servers"];
    for (const machine of [...ids, programs, "former"]) deploy(machine, sources);
    const flags: Flags = (id) => [
      "--tls-ca",
      on(id, "pki/ca.pem"),
      "--tls-cert",
      on(id, `pki/${id}.pem`),
      "--tls-key",
      on(id, `pki/${id}.key`),
    ];
    await Promise.all(ids.flatMap((id) => [startPeer(id, flags), startNode(id, flags), startCore(id)]));

    const tls = (machine: string, authority: string, name: string): TlsFiles => ({
      ca: on(machine, `${authority}/ca.pem`),
      cert: on(machine, `${authority}/${name}.pem`),
      key: on(machine, `${authority}/${name}.key`),
    });
    const toPeers = (machine: string) => ({ tls: tls(machine, "pki", "client") });
    const toCore = (machine: string) => ({ tls: tls(machine, "clients", "program") });
    const content = randomBytes(100_000);
    writeFileSync(join(folder, "content"), content);
    const files = async (words: readonly string[]) => {
      const urls = ids.map((id) => `https://${at("http", id)}`).join();
      const env = { ...process.env, LEASEHOLD_FILES_USER: user, LEASEHOLD_NODES: urls };
      const all = ["files", ...words, "--tls-ca", on(programs, "pki/ca.pem")];
      const { code, stderr, stdout } = await leasehold(all, { env }).finished;
      if (code !== 0) throw new Error(`${words[0]}: ${code} ${stderr}`);
      return stdout;
    };

    const load = new Load();
    const given = (asText: boolean, files: TlsFiles) => ({
      tls: asText ? textsOf(files) : files,
      timeout: "20s",
    });
    await load.use("peers", (asText) => open(...peerUrls(), given(asText, toPeers(programs).tls)));
    await load.use("core", (asText) => open(coreUrl(), given(asText, toCore(programs).tls)));
    load.put(files);
    await rotate(sources, load, (id) => [
      [`peer ${id}`, () => startPeer(id, flags)],
      [`node ${id}`, () => startNode(id, flags)],
      [`core ${id}`, () => startCore(id)],
    ]);
    await load.end();
    expect(load.errors).toEqual([]);
    for (const count of Object.values(load.counts)) expect(count).toBeGreaterThan(20);

    expect(JSON.parse(await files(["ls", "put", "-o", "json"]))).toHaveLength(load.counts.put);
    await files(["get", `put/${load.counts.put - 1}`, join(folder, "back")]);
    expect(readFileSync(join(folder, "back"))).toEqual(content);
    for (const id of ids) {
      const peer = `flease://${at("peer", id)}`;
      const core = `core://${at("coreClient", id)}`;
      expect([await connecting(peer, toPeers("former")), await connecting(peer, toPeers(programs))]).toEqual([
        "UNAUTHENTICATED",
        "connected",
      ]);
      const former = await connecting(core, toCore("former"));
      expect([former === "connected", await connecting(core, toCore(programs))]).toEqual([
        false,
        "connected",
      ]);
    }
  });

  test("the keys of a cluster are changed", async () => {
    await cert("key", "cluster.key", "--roles");
    writeClientKeys();
    const sources = ["cluster.key", "clients.key"];
    for (const machine of [...ids, programs, "former"]) deploy(machine, sources);
    const flags: Flags = (id) => ["--key-file", on(id, "cluster.key")];
    await Promise.all(ids.map((id) => startPeer(id, flags)));
    const toPeers = (machine: string) => ({ keyFile: on(machine, "clients.key") });
    const load = new Load();
    await load.use("peers", () => open(...peerUrls(), { ...toPeers(programs), timeout: "20s" }));
    await rotate(sources, load, (id) => [[`peer ${id}`, () => startPeer(id, flags)]]);
    await load.end();
    expect(load.errors).toEqual([]);
    for (const id of ids) {
      const peer = `flease://${at("peer", id)}`;
      expect([await connecting(peer, toPeers("former")), await connecting(peer, toPeers(programs))]).toEqual([
        "UNAUTHENTICATED",
        "connected",
      ]);
    }
  });
});
