import { type ErrorCode, LeaseholdError } from "leasehold";
import { ExecutionError, type ExecutionResult, type ExecutionStats, ResourceLockedError } from "./errors.js";
import type { Client } from "./ground.js";
import { drawDelayMs, type Settings } from "./settings.js";

/** The number of attempts that a result or an error keeps. */
const attemptsMax = 1_000;

/** The longest delay of a timer. */
const timerMsMax = 2 ** 31 - 1;

/** Errors after which the next attempt may succeed. A mistake of the program is thrown at once, unchanged. */
const passing = new Set<ErrorCode>([
  "LEASE_HELD",
  "LEASE_BROKEN",
  "TIMEOUT",
  "NO_QUORUM",
  "UNREACHABLE",
  "STORE_UNAVAILABLE",
  "OVERLOADED",
  "RESOURCES_FULL",
  "TOO_MANY_WAITERS",
  "CLOCK_SKEW",
]);

/** A call that is retried until it succeeds. */
export interface Operation<T> {
  readonly settings: Settings;
  /**
   * One attempt. If the operation `waits`, the attempt gets the time until the next one and may wait that
   * long.
   */
  readonly attempt: (waitMs: number) => Promise<T>;
  readonly waits?: boolean;
  /** Whether a lost lease is retried like other errors, because the next attempt may succeed. */
  readonly survivesLoss?: boolean;
}

/** Retries according to redlock's settings. */
export class Attempts {
  readonly #client: Client;
  readonly #quit: AbortSignal;
  readonly #onError: (error: Error) => void;

  constructor(client: Client, quit: AbortSignal, onError: (error: Error) => void) {
    this.#client = client;
    this.#quit = quit;
    this.#onError = onError;
  }

  /** Attempts until one succeeds, at most `retryCount` + 1 times. */
  async execute<T>(operation: Operation<T>): Promise<{ value: T } & ExecutionResult> {
    const { settings, attempt, waits = false } = operation;
    const attempts: Promise<ExecutionStats>[] = [];
    for (let delayMs = 0, count = 1; ; count += 1, delayMs = drawDelayMs(settings)) {
      const nextMs = performance.now() + delayMs;
      if (!waits && count > 1) await this.#pause(delayMs);
      try {
        const value = await attempt(waits ? delayMs : 0);
        keep(attempts, this.stats());
        return { value, attempts };
      } catch (error) {
        const vote = voteOf(error);
        keep(attempts, this.stats(vote));
        this.#onError(vote);
        const isLoss = error instanceof LeaseholdError && error.code === "LEASE_LOST";
        if (isLoss && operation.survivesLoss !== true) throw lossOf(error, attempts);
        if (!isLoss && !(error instanceof LeaseholdError && passing.has(error.code))) throw error;
        const isLast = settings.retryCount !== -1 && !(count < settings.retryCount + 1);
        if (isLast)
          throw new ExecutionError(`None of ${count} attempts succeeded.`, attempts, { cause: vote });
        if (waits) await this.#pause(nextMs - performance.now());
      }
    }
  }

  /** The statistics of one attempt. There is one client, so there is one vote. */
  async stats(error?: Error): Promise<ExecutionStats> {
    const client = this.#client;
    return {
      membershipSize: 1,
      quorumSize: 1,
      votesFor: new Set(error === undefined ? [client] : []),
      votesAgainst: new Map(error === undefined ? [] : [[client, error]]),
    };
  }

  /** Waits at least until timers have run: attempts without delays would block the event loop. */
  async #pause(ms: number): Promise<void> {
    const signal = this.#quit;
    await new Promise<void>((resolve, reject) => {
      signal.throwIfAborted();
      const quit = () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      };
      const timer = setTimeout(
        () => {
          signal.removeEventListener("abort", quit);
          resolve();
        },
        Math.min(Math.max(ms, 0), timerMsMax),
      );
      signal.addEventListener("abort", quit, { once: true });
    });
  }
}

function keep(attempts: Promise<ExecutionStats>[], stats: Promise<ExecutionStats>): void {
  if (attempts.length === attemptsMax) attempts.shift();
  attempts.push(stats);
}

/** Maps the error of an attempt to redlock's. */
function voteOf(error: unknown): Error {
  if (error instanceof LeaseholdError && (error.code === "LEASE_HELD" || error.code === "TIMEOUT"))
    return new ResourceLockedError("Another holds one of the resources.", { cause: error });
  return error instanceof Error ? error : new Error(String(error));
}

/** The error for a call whose lock was lost. */
export function lossOf(loss: unknown, attempts: ExecutionError["attempts"] = []): ExecutionError {
  return new ExecutionError("The lock was lost.", attempts, { cause: loss });
}
