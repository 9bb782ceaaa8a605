import type { Cancellation } from "../lease/provider.js";
import type { Timer, Timers } from "../common/ports.js";

/**
 * Switches the faults of one process: disconnected from the others, or stopped so that its timers do not run.
 */
export class ProcessSwitch {
  #isConnected = true;
  #isRunning = true;
  readonly #onReconnect = new Set<() => void>();
  readonly #onResume = new Set<() => void>();

  get isConnected(): boolean {
    return this.#isConnected;
  }

  cutOff(): void {
    this.#isConnected = false;
  }

  reconnect(): void {
    this.#isConnected = true;
    for (const run of this.#onReconnect) run();
    this.#onReconnect.clear();
  }

  pause(): void {
    this.#isRunning = false;
  }

  resume(): void {
    this.#isRunning = true;
    for (const run of this.#onResume) {
      this.#onResume.delete(run);
      run();
    }
  }

  /** Runs the function now, or when the process is resumed. */
  run(run: () => void): void {
    if (this.#isRunning) run();
    else this.#onResume.add(run);
  }

  /** Timers of the process. */
  timers(timers: Timers): Timers {
    return {
      after: (delayMs, run): Timer => {
        // A new function for each call, because the same function may be waiting twice.
        const fire = () => run();
        const timer = timers.after(delayMs, () => this.run(fire));
        return {
          cancel: () => {
            timer.cancel();
            this.#onResume.delete(fire);
          },
        };
      },
    };
  }

  /**
   * Resolves with true as soon as the process can reach the others, or with false if `timeoutMs` pass or it
   * is cancelled first.
   */
  async reaches(timers: Timers, timeoutMs: number, cancellation?: Cancellation): Promise<boolean> {
    if (cancellation?.cancelled === true || this.#isConnected) return cancellation?.cancelled !== true;
    return new Promise((resolve) => {
      const settle = () => {
        timer.cancel();
        this.#onReconnect.delete(settle);
        if (cancellation !== undefined) cancellation.onCancel = undefined;
        resolve(this.#isConnected && cancellation?.cancelled !== true);
      };
      const timer = timers.after(timeoutMs, settle);
      this.#onReconnect.add(settle);
      if (cancellation !== undefined) cancellation.onCancel = settle;
    });
  }
}
