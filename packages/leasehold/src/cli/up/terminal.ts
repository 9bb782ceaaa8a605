import { screen } from "../output/ansi.js";
import type { ScreenSize } from "./screen.js";

/** The size to assume when the terminal does not say. */
const SIZE_DEFAULT: ScreenSize = { columns: 80, rows: 24 };

const CTRL_C = "\u0003";

/** A full-screen terminal: entered once, drawn often, and always restored. */
export class Terminal {
  #entered = false;
  #drawn: readonly string[] = [];
  readonly #onKey: (key: string) => void;
  readonly #onResize = (): void => {
    process.stdout.write(screen.clear);
    this.#drawn = [];
    this.#redraw();
  };
  readonly #redraw: () => void;

  /**
   * @param onKey receives single keys; Ctrl-C arrives as `q`, because in raw mode it is a key and not a
   *   signal.
   */
  constructor(onKey: (key: string) => void, redraw: () => void) {
    this.#onKey = onKey;
    this.#redraw = redraw;
  }

  get size(): ScreenSize {
    const { columns, rows } = process.stdout;
    return { columns: columns || SIZE_DEFAULT.columns, rows: rows || SIZE_DEFAULT.rows };
  }

  enter(): void {
    this.#entered = true;
    // Every write to a closed terminal fails: SIGHUP ends the process.
    process.stdout.on("error", () => undefined);
    process.stdout.on("resize", this.#onResize);
    process.stdout.write(screen.enter);
    if (!process.stdin.isTTY) return;
    process.stdin.setRawMode(true);
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", this.#onData);
    process.stdin.on("error", () => undefined);
  }

  readonly #onData = (data: string | Buffer): void => {
    for (const key of String(data)) this.#onKey(key === CTRL_C ? "q" : key.toLowerCase());
  };

  /** Writes only the lines that changed, as one frame. */
  draw(lines: readonly string[]): void {
    if (!this.#entered || process.stdout.writableNeedDrain) return;
    let frame = "";
    for (const [index, line] of lines.entries()) {
      if (line !== this.#drawn[index]) frame += `${screen.line(index + 1)}${line}${screen.clearToEndOfLine}`;
    }
    this.#drawn = lines;
    if (frame !== "") process.stdout.write(screen.beginFrame + frame + screen.endFrame);
  }

  /** Idempotent, and safe to call while the process exits. */
  leave(): void {
    if (!this.#entered) return;
    this.#entered = false;
    process.stdout.off("resize", this.#onResize);
    process.stdout.write(screen.leave);
    if (!process.stdin.isTTY) return;
    process.stdin.off("data", this.#onData);
    process.stdin.setRawMode(false);
    process.stdin.pause();
  }
}
