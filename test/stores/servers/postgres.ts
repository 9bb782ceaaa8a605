import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { freePorts } from "../../free-ports.js";
import { type Account, findProgram, makeDirectory, removeDirectory, run, ServerProcess } from "./process.js";

/** The folders of Debian's package, newest first. */
const folders = [18, 17, 16, 15, 14].map((version) => `/usr/lib/postgresql/${version}/bin`);

function program(name: string): string {
  return findProgram(
    folders.map((folder) => join(folder, name)),
    "postgresql",
  );
}

/** From Debian's package pgbouncer. */
export const poolerProgram = "/usr/sbin/pgbouncer";

/**
 * The account that runs the server. PostgreSQL refuses to run as root; Debian's package creates an account
 * for it.
 */
async function account(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const id = async (kind: string) => Number(await run("id", [kind, "postgres"]));
  return { uid: await id("-u"), gid: await id("-g") };
}

/**
 * A real PostgreSQL server on a free port. Its superuser `boss` needs no password on this machine; other
 * users do.
 */
export class PostgresServer {
  readonly port: number;
  readonly directory: string;
  readonly #account: Account | undefined;
  #process: ServerProcess | undefined;

  private constructor(port: number, directory: string, owner: Account | undefined) {
    this.port = port;
    this.directory = directory;
    this.#account = owner;
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
    const owner = await account();
    const directory = await makeDirectory("postgres", owner);
    const server = new PostgresServer((await freePorts(1))[0]!, directory, owner);
    const data = join(directory, "data");
    const args = ["-D", data, "-U", "boss", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
    await run(program("initdb"), args, { cwd: directory, account: owner });
    await server.configure(settings);
    await server.restart();
    return server;
  }

  /** Starts a standby that replicates this server. */
  async startStandby(): Promise<PostgresServer> {
    const directory = await makeDirectory("postgres", this.#account);
    const standby = new PostgresServer((await freePorts(1))[0]!, directory, this.#account);
    const from = ["-h", "127.0.0.1", "-p", String(this.port), "-U", "boss"];
    await run(
      program("pg_basebackup"),
      [...from, "-D", join(directory, "data"), "-R", "-c", "fast", "--no-sync"],
      {
        cwd: directory,
        account: this.#account,
      },
    );
    await standby.restart();
    return standby;
  }

  /** Starts a transaction pooler before this server. Resolves with its port and a function that stops it. */
  async startPooler(): Promise<{ port: number; close(): Promise<void> }> {
    const port = (await freePorts(1))[0]!;
    const lines = [
      [
        "[databases]",
        `* = host=127.0.0.1 port=${this.port} user=boss`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
      ],
      [`listen_port = ${port}`, "auth_type = any", "pool_mode = transaction", "default_pool_size = 3"],
      ["unix_socket_dir =", "server_round_robin = 1"],
    ].flat();
    const path = join(this.directory, "pooler.ini");
    await writeFile(path, `${lines.join("\n")}\n`);
    const pooler = new ServerProcess(poolerProgram, [path], { cwd: this.directory, account: this.#account });
    await pooler.ready(async () => (await this.query("select 1", port)).length === 1);
    return { port, close: () => pooler.stop() };
  }

  async configure(settings: Readonly<Record<string, string>>): Promise<void> {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    await appendFile(join(this.directory, "data", "postgresql.conf"), lines.join(""));
  }

  /** Requires passwords from all users but `boss`. */
  async demandPasswords(): Promise<void> {
    const rules = "host all boss 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    await writeFile(join(this.directory, "data", "pg_hba.conf"), rules);
    await this.query("select pg_reload_conf()");
  }

  url(schema = "leasehold", user = "boss"): URL {
    return new URL(`postgres://${user}@127.0.0.1:${this.port}/postgres?schema=${schema}`);
  }

  async query(statement: string, port = this.port): Promise<unknown[]> {
    const client = new pg.Client({ host: "127.0.0.1", port, user: "boss", database: "postgres" });
    await client.connect();
    try {
      return (await client.query(statement)).rows as unknown[];
    } finally {
      await client.end();
    }
  }

  async restart(): Promise<void> {
    await this.kill();
    const settings = [
      `port=${this.port}`,
      "listen_addresses=127.0.0.1",
      `unix_socket_directories=${this.directory}`,
    ];
    const args = ["-D", join(this.directory, "data"), ...settings.flatMap((setting) => ["-c", setting])];
    this.#process = new ServerProcess(program("postgres"), args, {
      cwd: this.directory,
      account: this.#account,
    });
    await this.#process.ready(async () => (await this.query("select 1")).length === 1);
  }

  /** Stops only the process that accepts connections. Existing connections continue. */
  freeze(): void {
    this.#process?.freeze();
  }

  thaw(): void {
    this.#process?.thaw();
  }

  /** Kills the server as a crash would: nothing is flushed. */
  async kill(): Promise<void> {
    await this.#process?.stop("SIGQUIT");
  }

  async close(): Promise<void> {
    await this.kill();
    await removeDirectory(this.directory);
  }
}
