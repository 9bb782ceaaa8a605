import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { CommandBytes } from "../common/command-bytes.js";
import {
  FROM_RUN_FD,
  type FromGuard,
  TO_RUN_FD,
  type ToGuard,
  ignoreErrors,
  receive,
  send,
} from "./guard-link.js";
import type { Cause, Deadline, Limits } from "./guard-policy.js";
import { type GuardStarter, startGuard, withheldVariables } from "./guard-starter.js";
import { CommandProcesses, MARK_VARIABLE, markWithin } from "./process-group.js";

/**
 * How a guarded command ended. In every case the command and its descendants have exited, except for daemons.
 */
export type Ending =
  | {
      readonly kind: "ended";
      /** 128 + n if signal n ended it; `null` if only `signal` is known, or not even that. */
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      /** Set if the guard or this process ended the command. */
      readonly cause?: Cause;
      /** Everything had ended before the deadline that the guard knew. */
      readonly inTime: boolean;
      /** Processes that left the command's session and are still running. */
      readonly daemons: readonly string[];
    }
  | { readonly kind: "not-started"; readonly code: string; readonly message: string }
  /** The guard died. Either the command had not started, or it was killed. */
  | { readonly kind: "unguarded"; readonly how: string; readonly isKilled: boolean }
  /** Neither the guard nor the command was started: the system has no process or descriptor left. */
  | { readonly kind: "no-guard"; readonly error: Error };

export interface GuardedStart {
  readonly bytes: CommandBytes;
  readonly env: Readonly<Record<string, string>>;
  readonly deadline: Deadline;
  readonly limits: Limits;
  /** The path of the guard; only tests use another than the compiled one. */
  readonly guardPath?: string;
  /** Supplies guards that were started earlier. */
  readonly guards?: GuardStarter | undefined;
}

/** Timeout for the guard, which answers within milliseconds unless the machine is very busy. */
const GUARD_ANSWER_MS = 1_000;
/** The pause between checks for the end of a command that this process has killed. */
const GONE_LOOK_MS = 5;
/** Enough random bytes for marks that are unique on a machine. */
const MARK_BYTES = 8;

/** The side of `run`: starts the guard, which starts the command, and stays connected to it by pipes. */
export class GuardedCommand {
  /** Settles when the command and its descendants have ended. Never rejects. */
  readonly ended: Promise<Ending>;
  readonly #guard: ChildProcess;
  /** Absent if the guard could not be started. */
  #toGuard: Socket | undefined;
  readonly #mark: string;
  #settle: (ending: Ending) => void = () => undefined;
  #processes: CommandProcesses | undefined;
  #deadline: Deadline;
  #isLost = false;
  #last: Ending | undefined;

  constructor(start: GuardedStart) {
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const outer = process.env[MARK_VARIABLE];
    this.#mark = markWithin(outer, randomBytes(MARK_BYTES).toString("hex"));
    const { guardPath, guards } = start;
    this.#guard = guards === undefined ? startGuard(guardPath) : guards.take();
    const { bytes, deadline, limits } = start;
    this.#deadline = deadline;
    this.#guard.on("error", (error) => this.#settle({ kind: "no-guard", error }));
    // Node creates no pipes if the process could not be started because no descriptors were left.
    if (this.#guard.pid === undefined) return;
    this.#toGuard = this.#guard.stdio[FROM_RUN_FD] as Socket;
    ignoreErrors(this.#toGuard);
    receive<FromGuard>(
      this.#guard.stdio[TO_RUN_FD] as Socket,
      (message) => this.#onMessage(message),
      () => undefined,
    );
    // Not "exit": the guard's last message may still be in the pipe then.
    this.#guard.on("close", (code, signal) => this.#guardClosed(signal ?? `exit code ${code}`));
    const env = { ...withheldVariables(), ...start.env, [MARK_VARIABLE]: this.#mark };
    send(this.#toGuard, { type: "start", ...bytes, env, deadline, limits });
  }

  moveDeadline(deadline: Deadline): void {
    this.#deadline = deadline;
    this.#send({ type: "deadline", deadline });
  }

  forward(signal: NodeJS.Signals): void {
    this.#send({ type: "signal", signal });
  }

  /**
   * The lease is lost, so the command must end at once. This notifies the guard, and also kills the command
   * from here.
   */
  lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#send({ type: "lost" });
    this.#processes?.kill();
    // The guard does not respond, for example because it was stopped: this process ends the command.
    const impatient = setTimeout(() => this.#guard.kill("SIGKILL"), GUARD_ANSWER_MS);
    void this.ended.then(() => clearTimeout(impatient));
  }

  #send(message: ToGuard): void {
    if (this.#last === undefined && this.#toGuard !== undefined) send(this.#toGuard, message);
  }

  #onMessage(message: FromGuard): void {
    switch (message.type) {
      case "ready":
        this.#processes = new CommandProcesses(message.groupId, this.#mark);
        if (!this.#isLost) this.#send({ type: "go", deadline: this.#deadline });
        break;
      case "not-started":
        this.#end({ kind: "not-started", code: message.code, message: message.message });
        break;
      case "gone": {
        // The group's number may be reused from now on.
        this.#processes = undefined;
        const { code, signal, daemons, inTime } = message;
        // Processes killed from here may have ended before the guard reads the reason.
        const cause = message.cause ?? (this.#isLost ? "lost" : undefined);
        this.#end({ kind: "ended", code, signal, daemons, inTime, ...(cause && { cause }) });
        break;
      }
    }
  }

  /** The guard has sent its last message, and exits by itself. */
  #end(last: Ending): void {
    this.#last = last;
    this.#settle(last);
  }

  #guardClosed(how: string): void {
    if (this.#last !== undefined) return;
    const processes = this.#processes;
    if (processes !== undefined && processes.sweep() === undefined) {
      processes.kill();
      setTimeout(() => this.#guardClosed(how), GONE_LOOK_MS);
      return;
    }
    if (this.#isLost) {
      this.#settle({ kind: "ended", code: null, signal: null, cause: "lost", inTime: false, daemons: [] });
      return;
    }
    // Without a known group the gate was never opened, and has closed for good.
    this.#settle({ kind: "unguarded", how, isKilled: processes !== undefined });
  }
}
