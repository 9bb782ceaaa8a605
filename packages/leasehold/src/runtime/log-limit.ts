/** The same thing is said this often at most. */
export const logLimitMs = 60_000;

/** Causes that are told apart. Ours are a few dozen; beyond the bound the rest shares one. */
export const logCausesMax = 256;

const REST = "";

interface Said {
  untilMs: number;
  suppressed: number;
}

/**
 * Limits messages that others can trigger to one a minute and cause, each with the number of those left out
 * before it: they must not fill a disk, nor hide the line that matters. Pure: it is told the time.
 */
export class LogLimit {
  readonly #said = new Map<string, Said>();

  /** What to log now, or nothing. `nowMs` is on the steady clock. */
  line(cause: string, text: string, nowMs: number): string | undefined {
    const key = this.#said.has(cause) || this.#said.size < logCausesMax ? cause : REST;
    const said = this.#said.get(key);
    if (said !== undefined && nowMs < said.untilMs) {
      said.suppressed += 1;
      return undefined;
    }
    this.#said.set(key, { untilMs: nowMs + logLimitMs, suppressed: 0 });
    const suppressed = said?.suppressed ?? 0;
    return suppressed === 0 ? text : `${text} (and ${suppressed} more like it since this was last said)`;
  }
}
