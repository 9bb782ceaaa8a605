import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { MARK_VARIABLE, markWithin } from "./process-group.js";

const GUARD_PATH = fileURLToPath(new URL("./guard.js", import.meta.url));

/**
 * The maximum idle time of a guard, which costs memory. If the wait for the lease is longer, the guard ends,
 * and another is started for the command. The time to load the command and to connect does not count: on a
 * busy machine both take longer, and so would the start of another guard, during the lease.
 */
const IDLE_MS_MAX = 2_000;

/**
 * If this variable is set, Node reads and decodes all certificates, including its own, when a process starts.
 * The guard needs none, and without the variable starts with two thirds of the processor time. The command
 * gets the variable.
 */
const CERTIFICATES_VARIABLE = "NODE_EXTRA_CA_CERTS";

/** The variables that the command has and its guard does not. */
export function withheldVariables(): Readonly<Record<string, string>> {
  const value = process.env[CERTIFICATES_VARIABLE];
  return value === undefined ? {} : { [CERTIFICATES_VARIABLE]: value };
}

/**
 * Descriptors 3 and 4 connect the guard to this process. If they close before it has work, the guard ends.
 */
export function startGuard(path: string = GUARD_PATH): ChildProcess {
  // A new session: the terminal's signals must not end the guard before the command.
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

/** Starts a guard during the acquisition of the lease, because that is faster than the start of Node. */
export class GuardStarter implements Disposable {
  readonly #path: string | undefined;
  #early: ChildProcess | undefined;
  #idle: NodeJS.Timeout | undefined;

  /** @param path the guard's file if it is not the compiled one, in tests */
  constructor(path?: string) {
    this.#path = path;
    this.#early = startGuard(path);
    // If the guard fails, another is started for the command, and its error is reported then.
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

  /** The guard, which from now on belongs to the caller. */
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
   * Ends an unused guard. The guard has inherited our outputs, and must not keep their readers waiting until
   * it has loaded and notices that its pipes have closed. A process that is stuck in a file system never
   * closes them.
   */
  [Symbol.dispose](): void {
    clearTimeout(this.#idle);
    const early = this.#early;
    // This guard ends a while later; a caller that takes a guard meanwhile gets another.
    this.#early = undefined;
    // A process that could not be started has no pipes.
    for (const pipe of early?.stdio?.slice(3) ?? []) pipe?.destroy();
    early?.kill("SIGKILL");
    early?.unref();
  }
}

let early: GuardStarter | undefined;

/**
 * Starts a guard if the words run a command, before that command's modules are loaded: the guard takes
 * longest to start.
 */
export function startGuardEarly(words: readonly string[]): void {
  const end = words.indexOf("--");
  if (end === -1 || !words.slice(0, end).includes("run")) return;
  try {
    early = new GuardStarter();
    // If the words are refused, the guard stays unused, and must not keep the readers of our outputs waiting.
    process.once("exit", () => early?.[Symbol.dispose]());
  } catch {
    // The command tries to start another, and reports the error.
  }
}

/** A starter that belongs to the caller: the early one, or a new one. */
export function guardStarter(): GuardStarter {
  const started = early ?? new GuardStarter();
  early = undefined;
  return started;
}
