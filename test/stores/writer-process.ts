import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** `writer.mjs` as a process: its confirmed writes, and ways to end it. */
export class WriterProcess {
  /** Resolves with the exit code once the process has ended and all its output was read. */
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;
  #output = "";
  #errors = "";

  constructor(url: string, limit: number | "forever", uid?: number) {
    const script = fileURLToPath(new URL("writer.mjs", import.meta.url));
    const account = uid === undefined ? {} : { uid, gid: uid };
    this.#child = spawn(process.execPath, [script, url, String(limit)], {
      stdio: ["ignore", "pipe", "pipe"],
      ...account,
    });
    this.ended = once(this.#child, "close").then(([code]) => code as number | null);
    this.#child.stdout!.on("data", (chunk) => (this.#output += String(chunk)));
    this.#child.stderr!.on("data", (chunk) => (this.#errors += String(chunk)));
  }

  /** The numbers that the store has confirmed. */
  get confirmed(): number[] {
    return this.#output.split("\n").slice(0, -1).map(Number);
  }

  get errors(): string {
    return this.#errors;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async hasBegun(): Promise<void> {
    while (this.confirmed.length === 0 && this.#child.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
