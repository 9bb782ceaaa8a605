import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../../free-ports.js";
import { mainPath } from "../../support/built.js";
import { Client } from "./client.js";

/** How much of a server's output is kept, to help explain a failure. */
const outputCharactersMax = 20_000;

export type Program = "leasehold" | "etcd";

export interface ClusterOptions {
  readonly program?: Program;
  readonly flags?: readonly string[];
  /** Of Node itself. */
  readonly nodeFlags?: readonly string[];
  readonly scheme?: "http" | "https";
  /** Towards clients, where it is another. */
  readonly clientScheme?: "http" | "https";
  /** Where each server runs, and how it is started there; loopback by default. */
  readonly hosts?: readonly { readonly address: string; readonly prefix: readonly string[] }[];
  /** Environment variables for each server's process, in addition to ours. */
  readonly environment?: (index: number) => NodeJS.ProcessEnv;
  /** Of each server; a folder of the cluster's own by default. */
  readonly dataDir?: (index: number) => string;
}

/** One server's process, which can be killed and started again. */
export class CoreProcess {
  readonly name: string;
  readonly client: Client;
  readonly endpoint: string;
  readonly dataDir: string;
  readonly peerPort: number;
  readonly #words: readonly string[];
  readonly #environment: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;
  output = "";
  exitCode: number | null = null;

  constructor(
    name: string,
    endpoint: string,
    dataDir: string,
    words: readonly string[],
    environment: NodeJS.ProcessEnv = {},
  ) {
    this.name = name;
    this.endpoint = endpoint;
    this.dataDir = dataDir;
    this.peerPort = Number(new URL(words[words.indexOf("--listen-peer-urls") + 1]!).port);
    this.#words = words;
    this.#environment = environment;
    this.client = new Client(endpoint);
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  start(): void {
    const [command, ...words] = this.#words;
    const child = spawn(command!, words, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...this.#environment },
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => (this.output = (this.output + String(chunk)).slice(-outputCharactersMax)));
    child.on("exit", (code) => (this.exitCode = code));
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (!this.isRunning) return;
    const exited = once(this.#child!, "exit");
    this.#child!.kill("SIGCONT");
    this.#child!.kill(signal);
    await exited;
  }

  /** Resolves with the exit code. */
  async ended(): Promise<number | null> {
    if (this.isRunning) await once(this.#child!, "exit");
    return this.#child?.exitCode ?? null;
  }
}

/** Servers of one cluster: ours, or etcd's. */
export class CoreCluster implements AsyncDisposable {
  readonly servers: readonly CoreProcess[];
  readonly #folder: string;

  private constructor(servers: readonly CoreProcess[], folder: string) {
    this.servers = servers;
    this.#folder = folder;
  }

  static async create(count: number, options: ClusterOptions = {}): Promise<CoreCluster> {
    const { program = "leasehold", flags = [], nodeFlags = [], hosts, scheme = "http" } = options;
    const { clientScheme = scheme } = options;
    const folder = await mkdtemp(join(tmpdir(), "lh-core-"));
    const ports = hosts === undefined ? await freePorts(2 * count) : [];
    const places = Array.from({ length: count }, (_, index) => ({
      name: `s${index + 1}`,
      prefix: hosts?.[index]?.prefix ?? [],
      client: `${hosts?.[index]?.address ?? "127.0.0.1"}:${ports[2 * index] ?? 2379}`,
      peer: `${scheme}://${hosts?.[index]?.address ?? "127.0.0.1"}:${ports[2 * index + 1] ?? 2380}`,
    }));
    const initial = places.map(({ name, peer }) => `${name}=${peer}`).join(",");
    const command = program === "etcd" ? ["etcd"] : [process.execPath, ...nodeFlags, mainPath, "core"];
    const insecure = program === "leasehold" && hosts !== undefined ? ["--insecure"] : [];
    const servers = places.map(({ name, client, peer, prefix }, index) => {
      const dataDir = options.dataDir?.(index) ?? join(folder, name);
      const words = ["--name", name, "--data-dir", dataDir, "--initial-cluster", initial];
      words.push(
        "--listen-client-urls",
        `${clientScheme}://${client}`,
        "--advertise-client-urls",
        `${clientScheme}://${client}`,
      );
      words.push("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, ...insecure, ...flags);
      const environment = options.environment?.(index);
      return new CoreProcess(name, client, dataDir, [...prefix, ...command, ...words], environment);
    });
    return new CoreCluster(servers, folder);
  }

  /** Starts all of them, and resolves when they have a leader and answer. */
  static async start(count: number, options: ClusterOptions = {}): Promise<CoreCluster> {
    const cluster = await CoreCluster.create(count, options);
    for (const server of cluster.servers) server.start();
    try {
      await cluster.ready();
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  get endpoints(): string {
    return this.servers.map(({ endpoint }) => endpoint).join(",");
  }

  /** All running servers answer a linearizable read. The time limit allows for a busy machine. */
  async ready(withinMs = 150_000): Promise<void> {
    const endMs = performance.now() + withinMs;
    for (const server of this.servers) {
      if (!server.isRunning) continue;
      for (;;) {
        const answer = await server.client.range("ready", 1_000).catch(() => undefined);
        if (answer !== undefined) break;
        if (performance.now() > endMs || !server.isRunning)
          throw new Error(`${server.name} is not ready: ${server.output}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** The server that reports that it leads. Waits for one. */
  async leader(withinMs = 30_000): Promise<CoreProcess> {
    const endMs = performance.now() + withinMs;
    while (performance.now() < endMs) {
      for (const server of this.servers) {
        const status = server.isRunning ? await server.client.status(500).catch(() => undefined) : undefined;
        if (status !== undefined && status.leader !== 0n && status.leader === status.header?.memberId)
          return server;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`no leader: ${this.servers.map(({ output }) => output.slice(-500)).join("\n")}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.servers) server.client.close();
    await Promise.all(this.servers.map((server) => server.kill()));
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
