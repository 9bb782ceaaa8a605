import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { MARK_VARIABLE, markWithin } from "./process-group.js";

const GUARD_PATH = fileURLToPath(new URL("./guard.js", import.meta.url));

/**
 * The idle time of a guard, which costs memory. It ends after a longer wait for the lease, and another is
 * started for the command. The time to load the command and to connect is not part of it: on a busy machine
 * both take longer, and another guard would take as long again to start, under the lease.
 */
const IDLE_MS_MAX = 2_000;

/**
 * The variable for which Node reads and decodes all certificates, its own included, when a process starts.
 * The guard needs none, and starts with two thirds of the processor time without it. The command has it.
 */
const CERTIFICATES_VARIABLE = "NODE_EXTRA_CA_CERTS";

/** The variables that the command has and its guard does not. */
export function withheldVariables(): Readonly<Record<string, string>> {
  const value = process.env[CERTIFICATES_VARIABLE];
  return value === undefined ? {} : { [CERTIFICATES_VARIABLE]: value };
}

/** Descriptors 3 and 4 connect the guard to this process: it ends when they close before it has work. */
export function startGuard(path: string = GUARD_PATH): ChildProcess {
  // The session is new: signals of the terminal must not end the guard before the command.
  return spawn(process.execPath, [path], {
    stdio: ["inherit", "inherit", "inherit", "pipe", "pipe"],
    detached: true,
    env: {
      ...process.env,
      [MARK_VARIABLE]: markWithin(process.env[MARK_VARIABLE], "guard"),
      [CERTIFICATES_VARIABLE]: undefined,
    },
  });
}

/** Starts a guard during the acquisition of the lease, which is faster than the start of Node. */
export class GuardStarter implements Disposable {
  readonly #path: string | undefined;
  #early: ChildProcess | undefined;
  #idle: NodeJS.Timeout | undefined;

  /** @param path of another guard than the compiled one, in tests */
  constructor(path?: string) {
    this.#path = path;
    this.#early = startGuard(path);
    // A guard that fails is started once more for the command, and its error reported then.
    this.#early.on("error", this.#forget);
    this.#early.on("exit", this.#forget);
  }

  /** The wait for the lease begins. */
  limitIdling(): void {
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

  /**
   * Ends an unused guard. It has our outputs, and must not keep their readers waiting until it has been
   * loaded and reads that its pipes have closed; a process that is stuck in a file system never closes them.
   */
  [Symbol.dispose](): void {
    clearTimeout(this.#idle);
    const early = this.#early;
    // It ends a while later: who takes a guard meanwhile gets another.
    this.#early = undefined;
    // A process that could not be started has no pipes.
    for (const pipe of early?.stdio?.slice(3) ?? []) pipe?.destroy();
    early?.kill("SIGKILL");
    early?.unref();
  }
}

let early: GuardStarter | undefined;

/**
 * Starts a guard for words that run a command, before the modules of the command are loaded: the guard is the
 * last that its start waits for.
 */
export function startGuardEarly(words: readonly string[]): void {
  const end = words.indexOf("--");
  if (end === -1 || !words.slice(0, end).includes("run")) return;
  try {
    early = new GuardStarter();
    // Refused words take no guard, and it must not keep the readers of our outputs waiting.
    process.once("exit", () => early?.[Symbol.dispose]());
  } catch {
    // The command starts another, and reports why it can't.
  }
}

/** The caller's own: with the guard that was started early, or with a new one. */
export function guardStarter(): GuardStarter {
  const started = early ?? new GuardStarter();
  early = undefined;
  return started;
}
