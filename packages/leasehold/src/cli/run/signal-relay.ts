import { constants } from "node:os";
import { SIGNAL_BASE } from "../common/exit-codes.js";
import { listenToSignals } from "../common/signals.js";
import type { GuardedCommand } from "./guarded-command.js";

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
type Forwarded = (typeof FORWARDED)[number];

/** The two signals that do not end a process. Without a command they are ignored. */
const HARMLESS: ReadonlySet<Forwarded> = new Set(["SIGUSR1", "SIGUSR2"]);

/**
 * The signals that only request the end. SIGHUP makes many programs reload their settings, and SIGQUIT makes
 * some print their state.
 */
const ENDING: ReadonlySet<Forwarded> = new Set(["SIGINT", "SIGTERM"]);

/** Signals end the opening and the wait for the lease. While a command runs, they are passed to it. */
export class SignalRelay implements Disposable {
  readonly #abort = new AbortController();
  #received: Forwarded | undefined;
  /** The first signal that requested the end of the command and of any later one. */
  #asked: Forwarded | undefined;
  #command: GuardedCommand | undefined;
  readonly #stop = listenToSignals(FORWARDED, (signal) => this.#on(signal));

  /** Aborts when a signal requests the end while there is no command. */
  get withoutCommand(): AbortSignal {
    return this.#abort.signal;
  }

  /**
   * The exit code for the first signal that requested the end, before a command started or during the present
   * one.
   */
  get exitCode(): number | undefined {
    return this.#received === undefined ? undefined : exitCodeOfSignal(this.#received);
  }

  /** For `catch`: the exit code when a signal without a command caused the error. */
  readonly caught = (error: unknown): number => {
    if (this.exitCode === undefined || error !== this.#abort.signal.reason) throw error;
    return this.exitCode;
  };

  /** Forwards until `commandIsGone`. */
  forwardTo(command: GuardedCommand): void {
    this.#command = command;
  }

  /**
   * Forgets forwarded signals except a request to end, as the command may have ended because of the loss of
   * its lease instead.
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
