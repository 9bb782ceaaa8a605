/** The progress of a run: one line that is overwritten on a terminal, and an occasional line elsewhere. */
export class Progress {
  readonly #out: NodeJS.WriteStream;
  readonly #isTerminal: boolean;
  #saidMs = -Infinity;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
    this.#isTerminal = out.isTTY;
  }

  /** `part` is the share of the run that is done, from 0 to 1. */
  say(part: number, text: string): void {
    const nowMs = performance.now();
    if (!this.#isTerminal && nowMs - this.#saidMs < quietMs) return;
    this.#saidMs = nowMs;
    const percent = `${String(Math.min(100, Math.floor(part * 100))).padStart(3)} %`;
    if (!this.#isTerminal) {
      this.#out.write(`${percent}  ${text}\n`);
      return;
    }
    const full = Math.round(part * barCells);
    const bar = "█".repeat(full) + "░".repeat(Math.max(0, barCells - full));
    this.#out.write(`${startOfLine}${bar} ${percent}  ${text}`);
  }

  /** Erases the line, so that other output doesn't mix with it. */
  clear(): void {
    if (this.#isTerminal) this.#out.write(startOfLine);
  }
}

const quietMs = 15_000;
const barCells = 24;
const startOfLine = "\r\u001b[2K";
