import { join } from "node:path";
import { freePorts } from "../../free-ports.js";
import { type Account, findProgram, makeDirectory, removeDirectory, run, ServerProcess } from "./process.js";

/** The server refuses to run as root. Debian's package `mariadb-server-core` creates no account for it. */
async function account(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const id = async (kind: string) => Number(await run("id", [kind, "nobody"]));
  return { uid: await id("-u"), gid: await id("-g") };
}

/** Opens a connection to the server, by a driver of the caller's, and closes it. */
export type Probe = (port: number) => Promise<unknown>;

/** A real MariaDB on a free port. Its `root` needs no password on this machine. */
export class MariadbServer {
  readonly port: number;
  readonly #directory: string;
  readonly #account: Account | undefined;
  readonly #probe: Probe;
  #process: ServerProcess | undefined;

  private constructor(port: number, directory: string, owner: Account | undefined, probe: Probe) {
    this.port = port;
    this.#directory = directory;
    this.#account = owner;
    this.#probe = probe;
  }

  static async start(probe: Probe): Promise<MariadbServer> {
    const owner = await account();
    const directory = await makeDirectory("mariadb", owner);
    const server = new MariadbServer((await freePorts(1))[0]!, directory, owner, probe);
    const install = findProgram(["/usr/bin/mariadb-install-db"], "mariadb-server-core mariadb-client-core");
    const args = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"];
    const data = `--datadir=${join(directory, "data")}`;
    await run(install, ["--no-defaults", data, ...args], { cwd: directory, account: owner });
    await server.restart();
    return server;
  }

  async restart(): Promise<void> {
    await this.kill();
    const args = [
      "--no-defaults",
      `--datadir=${join(this.#directory, "data")}`,
      `--port=${this.port}`,
      "--bind-address=127.0.0.1",
      `--socket=${join(this.#directory, "socket")}`,
      "--skip-name-resolve",
    ];
    const program = findProgram(["/usr/sbin/mariadbd"], "mariadb-server-core");
    this.#process = new ServerProcess(program, args, { cwd: this.#directory, account: this.#account });
    await this.#process.ready(async () => {
      await this.#probe(this.port);
      return true;
    });
  }

  /** As a crash would: nothing is flushed. */
  async kill(): Promise<void> {
    await this.#process?.stop();
  }

  async close(): Promise<void> {
    await this.kill();
    await removeDirectory(this.#directory);
  }
}
