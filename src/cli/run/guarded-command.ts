import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { type FromGuard, LINK_FD, type ToGuard, receive, send } from "./guard-link.js";
import type { Cause, Deadline, Limits } from "./guard-policy.js";
import { groupIsGone, signalGroup } from "./process-group.js";

/** How a guarded command ended; its whole process group is gone in every case. */
export type Ending =
  | {
      readonly kind: "ended";
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      /** Set when the guard ended the command. */
      readonly cause?: Cause;
    }
  | { readonly kind: "not-started"; readonly code: string; readonly message: string }
  /** The guard died; we ended the command in its place. */
  | { readonly kind: "unguarded"; readonly how: string };

export interface GuardedStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly deadline: Deadline;
  readonly limits: Limits;
  /** The compiled guard; another one only in tests. */
  readonly guardPath?: string;
}

const GUARD_PATH = fileURLToPath(new URL("./guard.js", import.meta.url));

/** A guard answers within milliseconds; this is for a machine that is very busy. */
const GUARD_ANSWER_MS = 1_000;
/** How often we look whether a group that we ended ourselves has gone. */
const GONE_LOOK_MS = 5;

/** The side of `run`: starts the guard, which starts the command, and stays tied to it by one pipe. */
export class GuardedCommand {
  /** Settles when the command, and all that it left in its process group, is gone. Never rejects. */
  readonly ended: Promise<Ending>;
  readonly #guard: ChildProcess;
  readonly #link: Socket;
  #settle: (ending: Ending) => void = () => undefined;
  #groupId: number | undefined;
  #last: Ending | undefined;

  constructor(start: GuardedStart) {
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const path = start.guardPath ?? GUARD_PATH;
    // Its own session: what the terminal sends to the foreground must not end the guard before the command.
    this.#guard = spawn(process.execPath, [path], {
      stdio: ["inherit", "inherit", "inherit", "pipe"],
      detached: true,
    });
    this.#link = this.#guard.stdio[LINK_FD] as Socket;
    receive<FromGuard>(
      this.#link,
      (message) => this.#onMessage(message),
      () => undefined,
    );
    this.#guard.on("error", (error) => this.#settle({ kind: "unguarded", how: error.message }));
    // Not "exit": what the guard said last may still be in the pipe then.
    this.#guard.on("close", (code, signal) => this.#guardClosed(signal ?? `exit code ${code}`));
    const { command, args, env, deadline, limits } = start;
    send(this.#link, { type: "start", command, args, env, deadline, limits });
  }

  moveDeadline(deadline: Deadline): void {
    this.#tell({ type: "deadline", deadline });
  }

  forward(signal: NodeJS.Signals): void {
    this.#tell({ type: "signal", signal });
  }

  /** The lease is lost: the command has to go at once. Told to the guard, and done here as well. */
  lose(): void {
    this.#tell({ type: "lost" });
    this.kill();
    // A guard that does not answer (stopped, say) is of no use any more: without it, we look after the group ourselves.
    const impatient = setTimeout(() => this.#guard.kill("SIGKILL"), GUARD_ANSWER_MS);
    void this.ended.then(() => clearTimeout(impatient));
  }

  /** A second net below the guard, which may itself have been stopped. */
  kill(): void {
    if (this.#groupId !== undefined) signalGroup(this.#groupId, "SIGKILL");
  }

  #tell(message: ToGuard): void {
    if (this.#last === undefined) send(this.#link, message);
  }

  #onMessage(message: FromGuard): void {
    switch (message.type) {
      case "started":
        this.#groupId = message.pid;
        break;
      case "ending":
        break;
      case "not-started":
        this.#last = { kind: "not-started", code: message.code, message: message.message };
        break;
      case "gone":
        // From now on the number may belong to others.
        this.#groupId = undefined;
        this.#last = {
          kind: "ended",
          code: message.code,
          signal: message.signal,
          ...(message.cause && { cause: message.cause }),
        };
        break;
    }
  }

  #guardClosed(how: string): void {
    if (this.#last !== undefined) {
      this.#settle(this.#last);
      return;
    }
    if (this.#groupId !== undefined && !groupIsGone(this.#groupId)) {
      this.kill();
      setTimeout(() => this.#guardClosed(how), GONE_LOOK_MS);
      return;
    }
    this.#settle({ kind: "unguarded", how });
  }
}
