import { connect } from "node:net";
import { freePorts } from "../../free-ports.js";
import { findProgram, makeDirectory, removeDirectory, ServerProcess } from "./process.js";

export interface RedisServerOptions {
  /** Whether each command is written to a file and synced. Otherwise all data is lost with the process. */
  readonly durable?: boolean;
  readonly password?: string;
  /** Additional lines of the configuration: `["maxmemory", "3mb"]`. */
  readonly settings?: readonly (readonly [string, ...string[]])[];
}

/** A real Redis on a free port. */
export class RedisServer {
  readonly port: number;
  readonly #directory: string;
  readonly #options: RedisServerOptions;
  #process: ServerProcess | undefined;

  private constructor(port: number, directory: string, options: RedisServerOptions) {
    this.port = port;
    this.#directory = directory;
    this.#options = options;
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const server = new RedisServer((await freePorts(1))[0]!, await makeDirectory("redis"), options);
    await server.restart();
    return server;
  }

  url(key = "leasehold"): URL {
    return new URL(`redis://127.0.0.1:${this.port}/0?key=${key}`);
  }

  async restart(): Promise<void> {
    await this.kill();
    const { durable = false, password, settings = [] } = this.#options;
    const lines: (readonly string[])[] = [
      ["port", String(this.port)],
      ["bind", "127.0.0.1"],
      ["dir", this.#directory],
      ["save", ""],
      ["appendonly", durable ? "yes" : "no"],
      ["appendfsync", "always"],
      ...(password === undefined ? [] : [["requirepass", password]]),
      ...settings,
    ];
    const program = findProgram(["/usr/bin/redis-server", "/usr/local/bin/redis-server"], "redis-server");
    this.#process = new ServerProcess(
      program,
      lines.flatMap(([name, ...values]) => [`--${name}`, ...values]),
    );
    await this.#process.ready(async () => /^[+-]/.test(await this.command("PING")));
  }

  freeze(): void {
    this.#process?.freeze();
  }

  thaw(): void {
    this.#process?.thaw();
  }

  async kill(): Promise<void> {
    await this.#process?.stop();
  }

  async close(): Promise<void> {
    await this.kill();
    await removeDirectory(this.#directory);
  }

  /** Sends one line, and resolves with the beginning of the answer. */
  command(line: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.port, "127.0.0.1");
      const login = this.#options.password === undefined ? "" : `AUTH ${this.#options.password}\r\n`;
      socket.once("connect", () => socket.write(`${login}${line}\r\n`));
      let answer = "";
      socket.on("data", (chunk) => {
        answer += String(chunk);
        if (login !== "" && answer.startsWith("+OK\r\n") && answer.length === 5) return;
        socket.destroy();
        resolve(login === "" ? answer : answer.replace(/^\+OK\r\n/, ""));
      });
      socket.once("error", reject);
    });
  }
}
