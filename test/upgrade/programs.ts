import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";

const waitMsMax = 180_000;

async function until(holds: () => boolean): Promise<void> {
  const endMs = performance.now() + waitMsMax;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error("nothing happened for three minutes");
    await sleep(50);
  }
}

/** Processes of a given release: `dist` is the folder of its build. */
export class Program {
  output = "";
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;

  constructor(words: readonly string[]) {
    this.#child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.setEncoding("utf8").on("data", (text: string) => (this.output += text));
    this.#closed = once(this.#child, "close");
    onTestFinished(() => this.end("SIGKILL"));
  }

  static leasehold(dist: string, ...words: string[]): Program {
    return new Program([join(dist, "cli", "main.js"), ...words]);
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (!this.#hasEnded) this.#child.kill(signal);
    await this.#closed;
  }

  /** Waits for the process to end, and returns its exit code. */
  async code(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }

  async says(text: string): Promise<void> {
    await until(() => this.output.includes(text) || this.#hasEnded);
    if (!this.output.includes(text)) throw new Error(`it does not print ${text}: ${this.output}`);
  }
}

export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-upgrade-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

const holder = fileURLToPath(new URL("holder.mjs", import.meta.url));

const turnsEach = 5;

interface Report {
  readonly tenures: number;
  readonly problems: readonly string[];
}

/** Programs of several releases that contend for the same leases. Each also keeps one of its own. */
export class Holders {
  /** The number of shared leases held by programs that have ended. */
  tenures = 0;
  readonly #address: string;
  readonly #folder: string;
  readonly #ttlMs: number;
  readonly #holders = new Map<string, Program>();

  constructor(address: string, folder: string, ttlMs: number) {
    this.#address = address;
    this.#folder = folder;
    this.#ttlMs = ttlMs;
  }

  async start(name: string, dist: string): Promise<void> {
    const program = new Program([holder, dist, this.#address, this.#folder, name, String(this.#ttlMs)]);
    this.#holders.set(name, program);
    await program.says("holds");
  }

  /** Waits until each running program has acquired some more shared leases. */
  async takeTurns(): Promise<void> {
    const turns = () =>
      [...this.#holders].map(([name, { output }]) => [name, output.split("turn").length] as const);
    const goal = new Map(turns().map(([name, count]) => [name, count + turnsEach]));
    await until(() => turns().every(([name, count]) => count >= goal.get(name)!));
  }

  /** Ends a program. @throws Error if it has lost a lease, or met another holder. */
  async end(name: string): Promise<void> {
    const program = this.#holders.get(name)!;
    this.#holders.delete(name);
    await program.end();
    const { tenures, problems } = JSON.parse(program.output.trim().split("\n").at(-1)!) as Report;
    if (problems.length > 0) throw new Error(`${name}: ${problems.join("; ")}`);
    this.tenures += tenures;
  }

  async endAll(): Promise<void> {
    for (const name of this.#holders.keys()) await this.end(name);
  }
}
