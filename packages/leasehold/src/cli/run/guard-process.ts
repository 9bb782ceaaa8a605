/**
 * The guard of `leasehold run`: starts the command and ends it before its lease can pass to another holder,
 * whatever happens to `run`. Only pipes connect it to `run`: their end means that `run` is dead. It loads
 * nothing unnecessary, because the lease may already be running while it starts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { type FromGate, GATE_FD, GATE_SCRIPT, GATE_SHELL, gateLine, resolveCommand } from "./gate.js";
import {
  FROM_RUN_FD,
  type FromGuard,
  TO_RUN_FD,
  type ToGuard,
  ignoreErrors,
  now,
  receive,
  send,
} from "./guard-link.js";
import { listenToSignals } from "../common/signals.js";
import {
  type Cause,
  type Deadline,
  type Facts,
  type Limits,
  decide,
  mayStart,
  remainingMs,
} from "./guard-policy.js";
import { CommandProcesses, MARK_VARIABLE } from "./process-group.js";

/** Signals that the guard ignores: they are meant for the command, and `run` passes them on. */
const IGNORED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

/** The pause between checks for the end of the command's last process. */
const GONE_LOOK_MS = 5;

/** If two deadlines differ by less, they are the same one, read twice. */
const RENEWED_MS = 5;

type Start = Extract<ToGuard, { type: "start" }>;

class Guard {
  #deadline: Deadline = { monotonicMs: 0, wallMs: 0 };
  #limits: Limits = { killAfterMs: 0, killMarginMs: 0, startMs: 0 };
  /** The lease has been renewed since it was acquired. */
  #isRenewed = false;
  #orphaned = false;
  #lost = false;
  #terminatedAtMs: number | undefined;
  #cause: Cause | undefined;
  #gate: ChildProcess | undefined;
  #words: readonly string[] = [];
  #processes: CommandProcesses | undefined;
  /** The command's state: behind the gate, starting, or running. */
  #progress: "waiting" | "opened" | "started" = "waiting";
  /** `run` knows the process group. */
  #mayOpen = false;
  /** Signals for a command that has not started yet; sent now, they would be lost. */
  #signals: NodeJS.Signals[] = [];
  /** The command's exit status, as in a shell. */
  #status: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;
  readonly #toRun: Socket;

  constructor(fromRun: Socket, toRun: Socket) {
    this.#toRun = toRun;
    ignoreErrors(toRun);
    receive<ToGuard>(
      fromRun,
      (message) => this.#onMessage(message),
      () => {
        this.#orphaned = true;
        if (this.#gate === undefined) process.exit(0);
        this.#look();
      },
    );
  }

  #onMessage(message: ToGuard): void {
    switch (message.type) {
      case "start":
        this.#start(message);
        break;
      case "go":
        this.#moveDeadline(message.deadline);
        this.#mayOpen = true;
        this.#lookSoon();
        break;
      case "deadline":
        this.#moveDeadline(message.deadline);
        this.#lookSoon();
        break;
      case "lost":
        this.#lost = true;
        this.#look();
        break;
      case "signal":
        if (this.#progress === "started") this.#processes?.forward(message.signal);
        else this.#signals.push(message.signal);
        break;
    }
  }

  #moveDeadline(deadline: Deadline): void {
    if (deadline.monotonicMs - this.#deadline.monotonicMs >= RENEWED_MS) this.#isRenewed = true;
    this.#deadline = deadline;
  }

  #facts(): Facts {
    const facts = { now: now(), deadline: this.#deadline, orphaned: this.#orphaned, lost: this.#lost };
    const terminated = this.#terminatedAtMs === undefined ? {} : { terminatedAtMs: this.#terminatedAtMs };
    return { ...facts, ...terminated };
  }

  #start({ words, variables, env, deadline, limits }: Start): void {
    this.#deadline = deadline;
    this.#limits = limits;
    const found = resolveCommand(words, process.env["PATH"] ?? "");
    if (typeof found === "string") {
      this.#finish({ type: "not-started", code: found, message: found });
      return;
    }
    this.#words = variables.length === 0 ? found : ["env", ...variables, ...found];
    const gate = this.#spawnGate(env);
    if (gate?.pid === undefined) return;
    this.#gate = gate;
    this.#processes = new CommandProcesses(gate.pid, env[MARK_VARIABLE] ?? "");
    const pipe = gate.stdio[GATE_FD] as Socket;
    receive<FromGate>(
      pipe,
      (said) => this.#onGate(said),
      () => undefined,
    );
    gate.on("exit", (_code, signal) => this.#sweep(signal));
    send(this.#toRun, { type: "ready", groupId: gate.pid });
    // The deadline also closes a gate that was never opened.
    this.#lookSoon();
  }

  /**
   * Reports the reason if no process can be created, for example because there are too many variables or
   * processes.
   */
  #spawnGate(env: Start["env"]): ChildProcess | undefined {
    const refused = ({ code = "", message }: NodeJS.ErrnoException): void =>
      this.#finish({ type: "not-started", code: code === "E2BIG" ? code : "", message });
    try {
      // A new session: the command's processes form one group, and the terminal's signals arrive only through
      // `run`.
      const gate = spawn(GATE_SHELL, ["-c", GATE_SCRIPT, "leasehold"], {
        stdio: ["inherit", "inherit", "inherit", "pipe"],
        detached: true,
        env: { ...process.env, ...env },
      });
      gate.on("error", (error) => gate.pid === undefined && refused(error));
      return gate;
    } catch (error) {
      // Node reports some failures with an event and throws others.
      refused(error as NodeJS.ErrnoException);
      return undefined;
    }
  }

  #open(gate: ChildProcess): void {
    this.#progress = "opened";
    (gate.stdio[GATE_FD] as Socket).write(gateLine(this.#words));
  }

  #onGate(said: FromGate): void {
    if (said !== "started") {
      this.#status = said;
      return;
    }
    this.#progress = "started";
    for (const signal of this.#signals.splice(0)) this.#processes?.forward(signal);
  }

  /**
   * Decides after all pending messages have been read. A process that started late, was stopped or got no
   * processor time reads several deadlines, of which only the last counts. Timers run before the pipe is
   * read, immediates after that.
   */
  #lookSoon(): void {
    clearImmediate(this.#soon);
    this.#soon = setImmediate(() => this.#look());
  }

  /** Reads both clocks, acts, and sets the timer for the next time. */
  #look(): void {
    const processes = this.#processes;
    if (processes === undefined) return;
    clearTimeout(this.#timer);
    const facts = this.#facts();
    const { action, cause, wakeInMs } = decide(facts, this.#limits);
    // While the command waits to start, a near deadline may still be moved, and the command then starts.
    const isTime = mayStart(facts, this.#limits, this.#isRenewed);
    if (isTime && this.#mayOpen && this.#progress === "waiting") this.#open(this.#gate!);
    if (action !== "wait" && !this.#hasTime) {
      this.#cause ??= cause;
      if (action === "terminate" && this.#progress !== "waiting") {
        this.#terminatedAtMs = now().monotonicMs;
        processes.terminate();
      } else {
        processes.kill();
      }
    }
    this.#timer = setTimeout(() => this.#lookSoon(), wakeInMs);
  }

  /** Nothing is running that needs time to end, so `run` may send a later deadline until the present one. */
  get #hasTime(): boolean {
    const isAwaited = this.#progress === "waiting" && !this.#orphaned && !this.#lost;
    return isAwaited && remainingMs(now(), this.#deadline) > 0;
  }

  /** The command has ended, but its remaining processes must not outlive the lease either. */
  #sweep(signal: NodeJS.Signals | null): void {
    const [processes, gate] = [this.#processes, this.#gate];
    if (processes === undefined || gate === undefined) return;
    const daemons = processes.sweep();
    if (daemons === undefined) {
      setTimeout(() => this.#sweep(signal), GONE_LOOK_MS);
      return;
    }
    // The gate's last line may still be in the pipe.
    const pipe = gate.stdio[GATE_FD] as Socket;
    if (pipe.closed) this.#gone(signal, daemons);
    else pipe.once("close", () => this.#gone(signal, daemons));
  }

  #gone(signal: NodeJS.Signals | null, daemons: readonly string[]): void {
    const code = this.#status ?? null;
    if (this.#progress !== "started" && this.#cause === undefined && code === null) {
      this.#finish({ type: "not-started", code: "", message: `${GATE_SHELL} could not start it` });
      return;
    }
    const cause = this.#cause;
    const inTime = remainingMs(now(), this.#deadline) > 0;
    this.#finish({ type: "gone", code, signal, daemons, inTime, ...(cause && { cause }) });
  }

  #finish(last: FromGuard): void {
    clearTimeout(this.#timer);
    this.#processes = undefined;
    if (this.#orphaned) process.exit(0);
    send(this.#toRun, last);
    this.#toRun.end(() => process.exit(0));
  }
}

/** Makes this process the guard of the `run` that started it. */
export function beGuard(): Guard {
  listenToSignals(IGNORED, () => undefined);
  return new Guard(
    new Socket({ fd: FROM_RUN_FD, readable: true, writable: true }),
    new Socket({ fd: TO_RUN_FD, readable: true, writable: true }),
  );
}
