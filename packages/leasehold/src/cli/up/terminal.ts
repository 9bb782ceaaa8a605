import { type Key, emitKeypressEvents } from "node:readline";
import { screen } from "../output/ansi.js";
import type { ScreenSize } from "./screen.js";

/** The size to assume if the terminal does not report one. */
const SIZE_DEFAULT: ScreenSize = { columns: 80, rows: 24 };

/** Whether the key ends a full-screen program. */
export const isQuit = (key: string): boolean => ["q", "Q", "ctrl-c"].includes(key);

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
   * @param onKey receives characters, and names such as `up`, `pagedown`, `return`, `escape`, `backspace` and
   *   `ctrl-c`, which in raw mode is a key and not a signal.
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
    emitKeypressEvents(process.stdin);
    process.stdin.resume();
    process.stdin.on("keypress", this.#onKeypress);
    process.stdin.on("error", () => undefined);
  }

  readonly #onKeypress = (text: string | undefined, { name, ctrl = false, meta = false }: Key): void => {
    const isCharacter = text !== undefined && /^[^\p{Cc}]$/u.test(text) && !meta;
    if (isCharacter) this.#onKey(text);
    else if (name !== undefined) this.#onKey(ctrl ? `ctrl-${name}` : name);
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
    process.stdin.off("keypress", this.#onKeypress);
    process.stdin.setRawMode(false);
    process.stdin.pause();
  }
}
