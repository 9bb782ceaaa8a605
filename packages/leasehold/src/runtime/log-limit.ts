/** The minimum interval between messages with the same cause. */
export const logLimitMs = 60_000;

/** The maximum number of distinct causes within {@link logLimitMs}; all others share one. */
export const logCausesMax = 256;

const REST = "";

interface LastLine {
  untilMs: number;
  suppressed: number;
}

/**
 * Limits messages that others can trigger to one per minute and cause, each with the number suppressed before
 * it: they must neither fill the disk nor hide the line that matters. Pure: time is an argument.
 */
export class LogLimit {
  readonly #lastLines = new Map<string, LastLine>();

  /** The line to log now, if any. `nowMs` is on the steady clock. */
  line(cause: string, text: string, nowMs: number): string | undefined {
    if (this.#lastLines.size >= logCausesMax && !this.#lastLines.has(cause)) this.#forget(nowMs);
    const key = this.#lastLines.has(cause) || this.#lastLines.size < logCausesMax ? cause : REST;
    const last = this.#lastLines.get(key);
    if (last !== undefined && nowMs < last.untilMs) {
      last.suppressed += 1;
      return undefined;
    }
    this.#lastLines.set(key, { untilMs: nowMs + logLimitMs, suppressed: 0 });
    const suppressed = last?.suppressed ?? 0;
    return suppressed === 0 ? text : `${text} (and ${suppressed} more like it since the last such line)`;
  }

  /** Forgets causes that may be logged again: strangers can invent any number of them. */
  #forget(nowMs: number): void {
    for (const [cause, { untilMs }] of this.#lastLines) if (untilMs <= nowMs) this.#lastLines.delete(cause);
  }
}
