import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { environmentWithoutSettings } from "../settings/environment.js";

/**
 * The pause before a process that exited by itself is restarted, so that a broken one does not keep the
 * machine busy.
 */
const RESTART_MS = 1_500;

export interface ProcessPlan {
  readonly name: string;
  /** The path of the compiled module, relative to this one. */
  readonly module: string;
  readonly args: readonly string[];
}

export interface ProcessEvents {
  message(name: string, message: unknown): void;
  /** @param last the last line that the process wrote to standard error */
  exited(name: string, how: string, last: string): void;
}

/**
 * Processes that are started, restarted when they exit, and stopped together. Each is connected to this
 * process by an IPC channel and ends when that closes, so none survives this process.
 */
export class Processes {
  readonly #events: ProcessEvents;
  readonly #running = new Map<string, ChildProcess>();
  #stopping = false;

  constructor(events: ProcessEvents) {
    this.#events = events;
  }

  start(plan: ProcessPlan): void {
    if (this.#stopping) return;
    const path = fileURLToPath(new URL(plan.module, import.meta.url));
    const child = fork(path, [...plan.args], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: environmentWithoutSettings(),
    });
    this.#running.set(plan.name, child);
    let last = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      last = text.trimEnd().split("\n").at(-1) ?? last;
    });
    child.on("message", (message) => this.#events.message(plan.name, message));
    // The process has just exited; its exit event reports that.
    child.on("error", () => undefined);
    child.on("close", (code, signal) => {
      this.#running.delete(plan.name);
      if (this.#stopping) return;
      this.#events.exited(plan.name, signal ?? `exit code ${code}`, last);
      setTimeout(() => this.start(plan), RESTART_MS).unref();
    });
  }

  /** Returns whether the process was running. */
  kill(name: string): boolean {
    return this.#running.get(name)?.kill("SIGKILL") ?? false;
  }

  /** Exits from now on are intended: they are neither reported nor followed by a restart. */
  expectEnds(): void {
    this.#stopping = true;
  }

  /** Asks all to exit, and kills the rest after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.expectEnds();
    const children = [...this.#running.values()];
    const gone = Promise.all(children.map((child) => new Promise((resolve) => child.on("close", resolve))));
    for (const child of children) child.kill("SIGTERM");
    const late = sleep(graceMs, undefined, { ref: false }).then(() => this.killAll());
    await Promise.race([gone, late.then(() => gone)]);
  }

  /** Kills all at once. Can be called while this process exits. */
  killAll(): void {
    this.expectEnds();
    for (const child of this.#running.values()) child.kill("SIGKILL");
  }
}
