import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FilesStatus } from "../types.js";
import {
  exitCode,
  CommandFailure,
  usageError,
  listenToSignals,
  type Paint,
  paintFor,
  printLine,
  printLines,
  tableLines,
  freePorts,
  Processes,
  Terminal,
  isQuit,
} from "leasehold/cli";
import { type Found, nodeColumns, nodeRow } from "./commands.js";
import { Nodes, localNodes, textOf } from "./nodes.js";
import { passwordLengthMin } from "../s3/server.js";
import type { ServeNews } from "./serve.js";
import type { FilesOptions } from "./settings.js";

export interface FilesUpOptions extends FilesOptions {
  readonly dir: string;
  readonly port: number;
  readonly metricsPort?: number;
}

const ids = ["a", "b", "c"] as const;
/** Leases are short so that a killed primary is soon replaced. (All nodes share one clock.) */
const ttlMaxMs = 2_500;
const maxClockSkewMs = 50;
const lookMs = 500;
const frameMs = 250;
const graceMs = 4_000;
const startMsMax = 30_000;
/** Recent events shown on the screen. */
const newsMax = 8;

/** `leasehold files up`: runs three nodes on this machine until interrupted. */
export async function filesUp(options: FilesUpOptions): Promise<number> {
  if (options.output === "json") throw usageError("files up runs until it is stopped: -o must be table");
  const ports = await freePorts(options.port, 4 * ids.length);
  const stop = new AbortController();
  const stopWatch = listenToSignals(["SIGINT", "SIGTERM", "SIGHUP"], () => stop.abort());
  const cluster = new LocalNodes(resolve(options.dir), ports, options.metricsPort);
  const isScreen = process.stdout.isTTY === true;
  const view = isScreen ? new View(cluster, () => stop.abort()) : undefined;
  if (!isScreen) cluster.onNews = printLine;
  process.on("exit", () => {
    view?.close();
    cluster.killAll();
  });
  try {
    cluster.start();
    view?.open();
    await cluster.ready(stop.signal);
    if (!isScreen) printLines(cluster.introduction());
    await cluster.look(stop.signal);
  } finally {
    view?.close();
    await cluster.stop();
    stopWatch();
  }
  printLine(`the nodes have been stopped; their files are in ${cluster.directory}`);
  return exitCode("ok");
}

class LocalNodes {
  readonly directory: string;
  readonly urls: readonly string[];
  readonly news: string[] = [];
  found: readonly Found[] = [];
  onNews: (text: string) => void = () => undefined;
  readonly #ports: readonly number[];
  readonly #metricsPort: number | undefined;
  readonly #serving = new Set<string>();
  #fault: string | undefined;
  readonly #processes = new Processes({
    message: (id, message) => {
      if ((message as ServeNews).type !== "serving") return;
      this.#report(`node ${id} serves`);
      this.#serving.add(id);
    },
    exited: (id, how, last) => {
      const why = last === "" ? how : last.replace(/^leasehold: /, "");
      if (!this.#serving.has(id)) this.#fault = `node ${id} did not start: ${why}`;
      else this.#report(`node ${id} ended (${why}) and is restarted`);
    },
  });

  constructor(directory: string, ports: readonly number[], metricsPort: number | undefined) {
    this.directory = directory;
    this.#metricsPort = metricsPort;
    this.#ports = ports;
    this.urls = ids.map((_, index) => `http://127.0.0.1:${ports[index]}`);
  }

  start(): void {
    const at = (group: number, index: number) => `127.0.0.1:${this.#ports[group * ids.length + index]}`;
    const lists = ids.flatMap((id, index) => [
      "--node",
      `${id}=${at(1, index)}`,
      "--member",
      `${id}=${at(2, index)}`,
    ]);
    for (const [index, id] of ids.entries()) {
      const own = ["--id", id, "--dir", resolve(this.directory, id), "--http", at(0, index)];
      const s3 = hasShortSecret() ? [] : ["--s3", at(3, index)];
      const times = ["--ttl-max", `${ttlMaxMs}ms`, "--max-clock-skew", `${maxClockSkewMs}ms`];
      const first = this.#metricsPort;
      const metrics = first === undefined ? [] : ["--metrics-address", `127.0.0.1:${first + index}`];
      const args = ["files", "serve", ...own, ...s3, ...lists, ...times, ...metrics];
      this.#processes.start({ name: id, module: "../main.js", args });
    }
  }

  async ready(signal: AbortSignal): Promise<void> {
    const giveUpMs = performance.now() + startMsMax;
    while (this.#serving.size < ids.length && !signal.aborted) {
      if (this.#fault !== undefined) throw new CommandFailure("unavailable", this.#fault);
      if (performance.now() > giveUpMs)
        throw new Error(`the nodes did not start within ${startMsMax / 1_000} s`);
      await sleep(50, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Polls the status of each node. */
  async look(signal: AbortSignal): Promise<void> {
    const nodes = new Nodes(this.urls, lookMs, userOfNodes());
    while (!signal.aborted) {
      this.found = await Promise.all(nodes.urls.map((url) => statusOf(nodes, url)));
      await sleep(lookMs, undefined, { signal }).catch(() => undefined);
    }
  }

  kill(id: string): void {
    if (this.#processes.kill(id)) this.#report(`node ${id} is killed (SIGKILL)`);
  }

  introduction(): string[] {
    const known = this.urls.every((url, index) => url === localNodes[index]);
    const nodes = known ? "" : ` --nodes ${this.urls.join(",")}`;
    return [
      "in a second terminal:",
      `  npx leasehold files put${nodes} package.json`,
      `  npx leasehold files ls${nodes}`,
      `  rclone lsf --webdav-url ${this.urls[0]} :webdav:`,
      s3Line(`http://127.0.0.1:${this.#ports[3 * ids.length]}`),
      `each node's files are in ${this.directory}`,
    ];
  }

  async stop(): Promise<void> {
    await this.#processes.stop(graceMs);
  }

  killAll(): void {
    this.#processes.killAll();
  }

  #report(text: string): void {
    const line = `${new Date().toTimeString().slice(0, 8)}  ${text}`;
    this.news.push(line);
    if (this.news.length > newsMax) this.news.shift();
    this.onNews(line);
  }
}

/** The nodes' user. They inherit this process' environment. */
const userOfNodes = (): string | undefined => process.env["LEASEHOLD_FILES_USER"];

/** Whether the password is too short for S3. WebDAV on this machine accepts it. */
function hasShortSecret(): boolean {
  const user = userOfNodes();
  return user !== undefined && user.slice(user.indexOf(":") + 1).length < passwordLengthMin;
}

function s3Line(url: string): string {
  const user = userOfNodes();
  if (user === undefined) return `S3: ${url}, path style, any access key and secret`;
  if (hasShortSecret())
    return `no S3: the password of LEASEHOLD_FILES_USER has less than ${passwordLengthMin} characters`;
  return `S3: ${url}, path style, access key ${user.slice(0, user.indexOf(":"))}, and its password as the secret`;
}

async function statusOf(nodes: Nodes, url: URL): Promise<Found> {
  try {
    const text = await textOf(await nodes.askOne(url, { method: "GET", path: "" }));
    return { address: url.host, reachable: true, status: JSON.parse(text) as FilesStatus };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { address: url.host, reachable: false, reason: code ?? message };
  }
}

/** The full-screen view of the nodes. */
class View {
  readonly #cluster: LocalNodes;
  readonly #terminal: Terminal;
  readonly #paint: Paint = paintFor(true, process.env);
  #timer: NodeJS.Timeout | undefined;

  constructor(cluster: LocalNodes, stop: () => void) {
    this.#cluster = cluster;
    const onKey = (key: string): void => {
      const id = ids[Number(key) - 1];
      if (id !== undefined) cluster.kill(id);
      if (isQuit(key)) stop();
      this.#draw();
    };
    this.#terminal = new Terminal(onKey, () => this.#draw());
  }

  open(): void {
    this.#terminal.enter();
    this.#timer = setInterval(() => this.#draw(), frameMs);
    this.#draw();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#terminal.leave();
  }

  #draw(): void {
    const { columns, rows } = this.#terminal.size;
    const paint = this.#paint;
    const { found, news } = this.#cluster;
    const table =
      found.length === 0 ? ["the nodes start…"] : tableLines(nodeColumns, found.map(nodeRow), paint, columns);
    const keys = paint("dim", "1 2 3: kill a node, which is then restarted   q: stop");
    const lines = [
      paint("bold", "replicated files: three nodes on this machine"),
      "",
      ...table,
      "",
      ...this.#cluster.introduction(),
      "",
      ...news.map((line) => paint("dim", line)),
    ];
    const room = Math.max(0, rows - 2);
    const shown = lines.slice(0, room);
    this.#terminal.draw([...shown, ...Array<string>(room - shown.length).fill(""), keys]);
  }
}
