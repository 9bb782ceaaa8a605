import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { MARK_VARIABLE, markWithin } from "./process-group.js";

const GUARD_PATH = fileURLToPath(new URL("./guard.js", import.meta.url));

/**
 * A guard without work costs memory. When the lease is waited for that long, the guard ends, and another is
 * started for the command.
 */
const IDLE_MS_MAX = 2_000;

/** Its descriptors 3 and 4 tie it to this process: it ends when they close before it has work. */
export function startGuard(path: string = GUARD_PATH): ChildProcess {
  // Its own session: what the terminal sends to the foreground must not end the guard before the command.
  return spawn(process.execPath, [path], {
    stdio: ["inherit", "inherit", "inherit", "pipe", "pipe"],
    detached: true,
    env: { ...process.env, [MARK_VARIABLE]: markWithin(process.env[MARK_VARIABLE], "guard") },
  });
}

/** Starts a guard beside the acquisition of the lease: to start Node takes longer than that. */
export class GuardStarter implements Disposable {
  readonly #path: string | undefined;
  #early: ChildProcess | undefined;
  readonly #idle: NodeJS.Timeout;

  /** @param path of another guard than the compiled one, in tests */
  constructor(path?: string) {
    this.#path = path;
    this.#early = startGuard(path);
    // A guard that cannot be started, or dies, is started once more for the command, and its fault told then.
    this.#early.on("error", this.#forget);
    this.#early.on("exit", this.#forget);
    this.#idle = setTimeout(() => this[Symbol.dispose](), IDLE_MS_MAX);
    this.#idle.unref();
  }

  readonly #forget = (): void => {
    this.#early = undefined;
  };

  /** The guard, which is the caller's from now on. */
  take(): ChildProcess {
    const early = this.#early;
    clearTimeout(this.#idle);
    this.#early = undefined;
    if (early?.pid === undefined) return startGuard(this.#path);
    early.off("error", this.#forget);
    early.off("exit", this.#forget);
    return early;
  }

  /** Ends a guard that nobody took. */
  [Symbol.dispose](): void {
    clearTimeout(this.#idle);
    const early = this.#early;
    // It ends a while later: who takes a guard meanwhile gets another.
    this.#early = undefined;
    for (const pipe of early?.stdio.slice(3) ?? []) pipe?.destroy();
    early?.unref();
  }
}
