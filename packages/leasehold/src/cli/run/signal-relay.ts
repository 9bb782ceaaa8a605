import { constants } from "node:os";
import { SIGNAL_BASE } from "../common/exit-codes.js";
import { listenToSignals } from "../common/signals.js";
import type { GuardedCommand } from "./guarded-command.js";

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
type Forwarded = (typeof FORWARDED)[number];

/** The two signals that ask nobody to end. While there is no command, there is nothing for them to do. */
const HARMLESS: ReadonlySet<Forwarded> = new Set(["SIGUSR1", "SIGUSR2"]);

/**
 * Those that only ask to end. By SIGHUP many programs read their settings anew, and by SIGQUIT some tell what
 * they do.
 */
const ENDING: ReadonlySet<Forwarded> = new Set(["SIGINT", "SIGTERM"]);

/** Signals end the opening and the wait for the lease; while a command runs they are the command's. */
export class SignalRelay implements Disposable {
  readonly #abort = new AbortController();
  #received: Forwarded | undefined;
  /** The first that asked the command to end, and so whatever would come after it. */
  #asked: Forwarded | undefined;
  #command: GuardedCommand | undefined;
  readonly #stop = listenToSignals(FORWARDED, (signal) => this.#on(signal));

  /** Aborts when a signal asks to end while there is no command. */
  get withoutCommand(): AbortSignal {
    return this.#abort.signal;
  }

  /**
   * The exit code for the first signal that asked to end: before there was a command, or of the one that
   * there is.
   */
  get exitCode(): number | undefined {
    return this.#received === undefined ? undefined : exitCodeOfSignal(this.#received);
  }

  /** For `catch`: the exit code when a signal, which came while there was no command, ended what failed. */
  readonly caught = (error: unknown): number => {
    if (this.exitCode === undefined || error !== this.#abort.signal.reason) throw error;
    return this.exitCode;
  };

  /** Until the relay is told that the command is gone. */
  forwardTo(command: GuardedCommand): void {
    this.#command = command;
  }

  /**
   * What was passed on is done with, but for what asked to end: the command may have ended by the loss of its
   * lease instead.
   */
  commandIsGone(): void {
    this.#command = undefined;
    this.#received = this.#asked;
    if (this.#asked !== undefined) this.#abort.abort();
  }

  #on(signal: Forwarded): void {
    this.#command?.forward(signal);
    if (HARMLESS.has(signal)) return;
    this.#received ??= signal;
    if (this.#command === undefined) this.#abort.abort();
    else if (ENDING.has(signal)) this.#asked ??= signal;
  }

  [Symbol.dispose](): void {
    this.#stop();
  }
}

export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return SIGNAL_BASE + constants.signals[signal];
}
