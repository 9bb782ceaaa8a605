import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Real servers that tests start on free ports, each with a directory of its own, and stop. */

/** The end of a server's output is kept, for the error when the server does not start. */
const outputCharactersMax = 4_000;

export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A server's process. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #name: string;
  #output = "";

  constructor(
    command: string,
    args: readonly string[],
    options: {
      readonly cwd?: string;
      readonly account?: Account | undefined;
      readonly env?: NodeJS.ProcessEnv;
    } = {},
  ) {
    this.#name = command;
    this.#child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      cwd: options.cwd,
      env: options.env,
      ...options.account,
    });
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.on(
        "data",
        (chunk) => (this.#output = (this.#output + String(chunk)).slice(-outputCharactersMax)),
      );
    }
    this.#child.on("error", (error) => (this.#output += String(error)));
  }

  /** Polls until the server is ready, or throws with the server's output. */
  async ready(isReady: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
    const endMs = performance.now() + withinMs;
    while (!(await isReady().catch(() => false))) {
      if (this.#child.exitCode !== null || performance.now() > endMs)
        throw new Error(`${this.#name} did not start: ${this.#output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  async stop(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.thaw();
    this.#child.kill(signal);
    await exited;
  }
}

export async function run(
  command: string,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly account?: Account | undefined;
    readonly timeoutMs?: number;
  } = {},
): Promise<string> {
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: options.cwd,
    timeout: options.timeoutMs ?? 60_000,
    ...options.account,
  });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (chunk) => (output += String(chunk)));
  child.stderr.on("data", (chunk) => (errors += String(chunk)));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${errors.slice(-outputCharactersMax)}`);
  return output;
}

export async function makeDirectory(name: string, account?: Account): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), `leasehold-${name}-`));
  await chmod(path, 0o700);
  if (account !== undefined) await chown(path, account.uid, account.gid);
  return path;
}

export async function removeDirectory(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 });
}

/** The first of these files that exists, or an error that names the package to install. */
export function findProgram(paths: readonly string[], debianPackage: string): string {
  const found = paths.find((path) => existsSync(path));
  if (found === undefined)
    throw new Error(`${paths.join(" or ")} is missing: apt-get install ${debianPackage}`);
  return found;
}
