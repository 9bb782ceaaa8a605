import { isatty } from "node:tty";
import { printError, printProgress, shortTime } from "leasehold/cli";

/** A terminal is updated ten times a second, other output every ten seconds. */
const frameMs = 100;
const lineMs = 10_000;
/** The window over which speed is measured, ms. */
const windowMs = 3_000;
const barCells = 24;

const units = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

/** Formats a number of bytes for humans: `850 B`, `1.2 GB`. */
export function shortBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${units[unit]!}`;
}

/** Progress of a transfer: a bar on a terminal, otherwise an occasional line. Short transfers show none. */
export class Progress {
  readonly #name: string;
  readonly #bytes: number | undefined;
  readonly #begunMs = performance.now();
  readonly #recent: { readonly atMs: number; readonly done: number }[] = [];
  readonly #isTerminal = isatty(2);
  #shownMs = performance.now();
  #done = 0;

  constructor(name: string, bytes: number | undefined) {
    this.#name = name;
    this.#bytes = bytes;
  }

  get done(): number {
    return this.#done;
  }

  /** Sets the position. A restarted transfer goes back. */
  at(done: number): void {
    this.#done = done;
    const nowMs = performance.now();
    if (nowMs - this.#shownMs < (this.#isTerminal ? frameMs : lineMs)) return;
    this.#shownMs = nowMs;
    this.#recent.push({ atMs: nowMs, done });
    while (this.#recent.length > 2 && nowMs - this.#recent[0]!.atMs > windowMs) this.#recent.shift();
    if (this.#isTerminal) printProgress(this.line());
    else printError(this.line());
  }

  line(): string {
    const first = this.#recent[0];
    const last = this.#recent.at(-1);
    const elapsedMs =
      first === undefined || first === last ? performance.now() - this.#begunMs : last!.atMs - first.atMs;
    const perSecond = ((this.#done - (first === last ? 0 : first!.done)) / Math.max(1, elapsedMs)) * 1_000;
    const speed = `${shortBytes(Math.max(0, perSecond))}/s`;
    if (this.#bytes === undefined) return `${this.#name}  ${shortBytes(this.#done)}  ${speed}`;
    const part = this.#bytes === 0 ? 1 : this.#done / this.#bytes;
    const leftMs = ((this.#bytes - this.#done) / Math.max(1, perSecond)) * 1_000;
    const bar = this.#isTerminal ? `${barOf(part)}  ` : "";
    const left = this.#done < this.#bytes && perSecond > 0 ? `  ${shortTime(leftMs)} left` : "";
    const percent = `${Math.floor(part * 100)}%`.padStart(4);
    return `${this.#name}  ${bar}${percent}  ${shortBytes(this.#done)} of ${shortBytes(this.#bytes)}  ${speed}${left}`;
  }

  /** Removes the bar, and returns a summary. */
  end(): string {
    printProgress("");
    const ms = performance.now() - this.#begunMs;
    const speed = ms < 100 ? "" : ` (${shortBytes((this.#done / ms) * 1_000)}/s)`;
    return `${shortBytes(this.#done)} in ${shortTime(ms)}${speed}`;
  }
}

function barOf(part: number): string {
  const full = Math.round(Math.min(1, part) * barCells);
  return "█".repeat(full) + "░".repeat(barCells - full);
}
