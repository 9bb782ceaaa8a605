/**
 * The guard of `leasehold run`: starts the command and sees to it that the command is gone before its lease can pass
 * to another, whatever happens to `run`. It is tied to `run` by a pipe alone: the pipe's end means that `run` is dead.
 * It loads nothing that it does not need, because the lease's time already runs while it starts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { type FromGuard, LINK_FD, type ToGuard, now, receive, send } from "./guard-link.js";
import { type Cause, type Deadline, type Limits, decide } from "./guard-policy.js";
import { groupIsGone, signalGroup } from "./process-group.js";

/** What the guard ignores: signals are for the command, and `run` passes them on. */
const IGNORED: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"];

/** How often it looks whether the last process of the group has gone. */
const GONE_LOOK_MS = 5;

class Guard {
  #deadline: Deadline = { monotonicMs: 0, wallMs: 0 };
  #limits: Limits = { killAfterMs: 0, killMarginMs: 0 };
  #orphaned = false;
  #lost = false;
  #terminatedAtMs: number | undefined;
  #cause: Cause | undefined;
  #child: ChildProcess | undefined;
  #groupId: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #link: Socket;

  constructor(link: Socket) {
    this.#link = link;
    receive<ToGuard>(
      link,
      (message) => this.#onMessage(message),
      () => {
        this.#orphaned = true;
        if (this.#child === undefined) process.exit(0);
        this.#look();
      },
    );
  }

  #onMessage(message: ToGuard): void {
    switch (message.type) {
      case "start":
        this.#deadline = message.deadline;
        this.#limits = message.limits;
        this.#start(message.command, message.args, message.env);
        break;
      case "deadline":
        this.#deadline = message.deadline;
        this.#look();
        break;
      case "lost":
        this.#lost = true;
        this.#look();
        break;
      case "signal":
        if (this.#groupId !== undefined) signalGroup(this.#groupId, message.signal);
        break;
    }
  }

  #decide(): ReturnType<typeof decide> {
    const facts = { now: now(), deadline: this.#deadline, orphaned: this.#orphaned, lost: this.#lost };
    const terminated = this.#terminatedAtMs === undefined ? {} : { terminatedAtMs: this.#terminatedAtMs };
    return decide({ ...facts, ...terminated }, this.#limits);
  }

  #start(command: string, args: readonly string[], env: Readonly<Record<string, string>>): void {
    const { action, cause } = this.#decide();
    if (action !== "wait") {
      // The start took so long (a stopped machine, say) that the lease is nearly over: better not to begin.
      this.#finish({ type: "gone", code: null, signal: null, ...(cause && { cause }) });
      return;
    }
    // A session of its own: the command's processes are one group, and the terminal's signals come through `run` only.
    const options = { stdio: "inherit", detached: true, env: { ...process.env, ...env } } as const;
    let child: ChildProcess;
    try {
      child = spawn(command, args, options);
    } catch (error) {
      this.#finish(notStarted(error as NodeJS.ErrnoException));
      return;
    }
    this.#child = child;
    child.on("error", (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) this.#finish(notStarted(error));
    });
    if (child.pid === undefined) return;
    this.#groupId = child.pid;
    send(this.#link, { type: "started", pid: child.pid });
    child.on("exit", (code, signal) => this.#sweep(code, signal));
    this.#look();
  }

  /** Looks at both clocks, acts, and sets the timer for the next look. */
  #look(): void {
    const groupId = this.#groupId;
    if (groupId === undefined) return;
    clearTimeout(this.#timer);
    const { action, cause, wakeInMs } = this.#decide();
    if (action !== "wait") {
      if (this.#cause === undefined && cause !== undefined) {
        this.#cause = cause;
        send(this.#link, { type: "ending", cause });
      }
      if (action === "terminate") {
        this.#terminatedAtMs = now().monotonicMs;
        signalGroup(groupId, "SIGTERM");
        // A stopped process acts on SIGTERM only when it goes on.
        signalGroup(groupId, "SIGCONT");
      } else {
        signalGroup(groupId, "SIGKILL");
      }
    }
    this.#timer = setTimeout(() => this.#look(), wakeInMs);
  }

  /** The command has ended: what it left behind in its group must not outlive the lease either. */
  #sweep(code: number | null, signal: NodeJS.Signals | null): void {
    const groupId = this.#groupId;
    if (groupId === undefined) return;
    if (!groupIsGone(groupId)) {
      signalGroup(groupId, "SIGKILL");
      setTimeout(() => this.#sweep(code, signal), GONE_LOOK_MS);
      return;
    }
    this.#finish({ type: "gone", code, signal, ...(this.#cause && { cause: this.#cause }) });
  }

  #finish(last: FromGuard): void {
    clearTimeout(this.#timer);
    this.#groupId = undefined;
    if (this.#orphaned) process.exit(0);
    send(this.#link, last);
    this.#link.end(() => process.exit(0));
  }
}

function notStarted(error: NodeJS.ErrnoException): FromGuard {
  return { type: "not-started", code: error.code ?? "", message: error.message };
}

for (const signal of IGNORED) process.on(signal, () => undefined);
export const guard = new Guard(new Socket({ fd: LINK_FD, readable: true, writable: true }));
