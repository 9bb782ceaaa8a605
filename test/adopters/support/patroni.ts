import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { stringify } from "yaml";
import type { TlsFiles } from "../../../packages/leasehold/src/runtime/options.js";
import { freePorts } from "../../free-ports.js";
import { type Account, makeDirectory, removeDirectory, run } from "../../stores/servers/process.js";

const outputCharactersMax = 20_000;
const environment = { PATH: process.env["PATH"], LANG: "C.UTF-8" };

/** A member in the answer of Patroni's REST API. */
export interface Listed {
  readonly name: string;
  readonly role: string;
  readonly state: string;
}

export interface Core {
  /** Addresses such as `127.0.0.1:2379`. */
  readonly endpoints: readonly string[];
  readonly tls: TlsFiles;
  readonly user: string;
  readonly password: string;
}

/** The dynamic settings; times are in seconds. */
export const settings = {
  ttl: 20,
  loop_wait: 2,
  retry_timeout: 6,
  maximum_lag_on_failover: 1_048_576,
  synchronous_mode: true,
};

/**
 * One Patroni with its PostgreSQL, both as Debian's user `postgres`, since PostgreSQL refuses to run as root.
 */
export class PatroniNode {
  readonly name: string;
  readonly port: number;
  readonly configFile: string;
  readonly #restPort: number;
  readonly #folder: string;
  readonly #account: Account;
  #child: ChildProcess | undefined;
  output = "";

  private constructor(name: string, port: number, restPort: number, folder: string, account: Account) {
    this.name = name;
    this.port = port;
    this.#restPort = restPort;
    this.configFile = join(folder, "patroni.yml");
    this.#folder = folder;
    this.#account = account;
  }

  static async create(name: string, core: Core): Promise<PatroniNode> {
    const id = async (kind: string) => Number(await run("id", [kind, "postgres"]));
    const account = { uid: await id("-u"), gid: await id("-g") };
    const folder = await makeDirectory("patroni", account);
    const [port, restPort] = (await freePorts(2)) as [number, number];
    const node = new PatroniNode(name, port, restPort, folder, account);
    const own = (from: unknown, to: string) => {
      const path = join(folder, to);
      copyFileSync(String(from), path);
      chownSync(path, account.uid, account.gid);
      return path;
    };
    const config = {
      scope: "adopters",
      name,
      restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restPort}` },
      etcd3: {
        hosts: core.endpoints,
        protocol: "https",
        cacert: own(core.tls.ca, "ca.pem"),
        cert: own(core.tls.cert, "cert.pem"),
        key: own(core.tls.key, "key.pem"),
        username: core.user,
        password: core.password,
      },
      bootstrap: {
        dcs: { ...settings, postgresql: { use_pg_rewind: true } },
        initdb: [{ encoding: "UTF8" }, "no-sync"],
      },
      postgresql: {
        listen: `127.0.0.1:${port}`,
        connect_address: `127.0.0.1:${port}`,
        data_dir: join(folder, "data"),
        bin_dir: binaries(),
        pgpass: join(folder, "pgpass"),
        pg_hba: [
          "local all all trust",
          "host all all 127.0.0.1/32 trust",
          "host replication all 127.0.0.1/32 trust",
        ],
        authentication: {
          superuser: { username: "postgres", password: "super" },
          replication: { username: "replicator", password: "replica" },
        },
        parameters: { unix_socket_directories: folder, shared_buffers: "16MB", max_connections: 30 },
        remove_data_directory_on_diverged_timelines: true,
      },
    };
    writeFileSync(node.configFile, stringify(config), { mode: 0o600 });
    chownSync(node.configFile, account.uid, account.gid);
    return node;
  }

  get isRunning(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  start(): void {
    const env = { ...environment, HOME: this.#folder };
    // The process has a session of its own, as under a service manager.
    const options = { cwd: this.#folder, env, detached: true, ...this.#account };
    const child = spawn("/usr/bin/patroni", [this.configFile], {
      ...options,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => (this.output = (this.output + String(chunk)).slice(-outputCharactersMax)));
    this.#child = child;
  }

  /** Kills Patroni and all processes of PostgreSQL, like a power failure. */
  async kill(): Promise<void> {
    if (this.#child !== undefined && this.isRunning) {
      const exited = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await exited;
    }
    const [pid] = fileOr(join(this.#folder, "data/postmaster.pid"), "").split("\n");
    if (pid === undefined || pid === "" || !fileOr(`/proc/${pid}/cmdline`, "").includes(this.#folder)) return;
    const children = fileOr(`/proc/${pid}/task/${pid}/children`, "").split(" ").filter(Boolean);
    for (const each of [pid, ...children]) {
      try {
        process.kill(Number(each), "SIGKILL");
      } catch {
        // It has already ended.
      }
    }
  }

  /** A connection to this node's PostgreSQL. */
  client(): pg.Client {
    return new pg.Client({
      host: "127.0.0.1",
      port: this.port,
      user: "postgres",
      database: "postgres",
      connectionTimeoutMillis: 1_000,
    });
  }

  async patronictl(...words: string[]): Promise<string> {
    const options = { env: { ...environment, HOME: this.#folder }, timeout: 60_000, ...this.#account };
    const { stdout } = await promisify(execFile)(
      "/usr/bin/patronictl",
      ["-c", this.configFile, ...words],
      options,
    );
    return stdout;
  }

  /** All members, as this node's Patroni sees them. */
  async list(): Promise<readonly Listed[]> {
    const answer = await fetch(`http://127.0.0.1:${this.#restPort}/cluster`, {
      signal: AbortSignal.timeout(5_000),
    });
    return ((await answer.json()) as { members: Listed[] }).members;
  }

  async dispose(): Promise<void> {
    await this.kill();
    await removeDirectory(this.#folder);
  }
}

function binaries(): string {
  const root = "/usr/lib/postgresql";
  const newest = readdirSync(root).sort((a, b) => Number(b) - Number(a))[0]!;
  return join(root, newest, "bin");
}

function fileOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return otherwise;
  }
}
