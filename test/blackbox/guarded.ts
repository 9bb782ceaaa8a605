import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { programBeside } from "./build.js";
import type { GuardOrders } from "./guard.js";

/** Starts and ends the guard process. No fault ever strikes it. */
export class Guarded {
  readonly socket: string;
  readonly #orders: GuardOrders;
  #child: ChildProcess | undefined;

  constructor(run: string, folder: string) {
    this.socket = join(folder, "guard.socket");
    this.#orders = { run, journal: join(folder, "guard.journal"), socket: this.socket };
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [programBeside("guard"), JSON.stringify(this.#orders)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      detached: true,
    });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.once("message", () => resolve());
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the guarded resource ended with ${code}`)));
    });
  }

  destroy(): void {
    this.#child?.kill("SIGKILL");
  }
}
