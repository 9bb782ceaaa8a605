// The progress of a run: a bar on a terminal, and elsewhere a line from time to time.
const everyMs = 15_000;
const columns = 30;

export class Progress {
  #total;
  #done = 0;
  #lastMs = 0;
  #started = performance.now();

  constructor(total) {
    this.#total = total;
  }

  step(text) {
    this.#show(text);
    this.#done += 1;
  }

  /** Prints a text above the bar. */
  say(text) {
    process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}\n` : `${text}\n`);
  }

  end() {
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  }

  #show(text) {
    const part = this.#done / this.#total;
    const seconds = Math.round((performance.now() - this.#started) / 1_000);
    if (process.stderr.isTTY) {
      const bar = "█".repeat(Math.round(part * columns)).padEnd(columns, "░");
      process.stderr.write(
        `\r\x1b[K${bar} ${Math.round(part * 100)} %, ${seconds} s: ${text}`.slice(
          0,
          8 + process.stderr.columns,
        ),
      );
    } else if (performance.now() - this.#lastMs >= everyMs) {
      this.#lastMs = performance.now();
      process.stderr.write(`${Math.round(part * 100)} % after ${seconds} s: ${text}\n`);
    }
  }
}
