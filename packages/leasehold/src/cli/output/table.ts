import type { Paint, Style } from "./ansi.js";
import { cellsOf, cut, pad, printable } from "./cells.js";
import { greatest } from "../../common/lists.js";

export interface Cell {
  readonly text: string;
  readonly style?: Style;
}

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** The column may be truncated on a narrow terminal, down to a minimum width. */
  readonly shrinks?: boolean;
}

const GAP = "  ";
/** A narrower column would be unreadable. */
const SHRUNK_CELLS_MIN = 8;

/** Aligned lines, the titles first. Nothing is truncated without `widthMax`. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  paint: Paint,
  widthMax = Infinity,
): string[] {
  const texts = rows.map((row) => row.map((cell) => printable(cell.text)));
  const natural = columns.map((column, index) =>
    greatest(
      texts.map((row) => cellsOf(row[index] ?? "")),
      cellsOf(column.title),
    ),
  );
  const widths = shrink(columns, natural, widthMax);
  const line = (cells: readonly string[], style: (index: number, text: string) => string): string =>
    cells
      .map((text, index) => {
        const width = widths[index] ?? 0;
        const shown = cut(text, width);
        const padded = pad(shown, width, columns[index]?.align);
        // Only the text is coloured, not its padding; the last column needs no padding.
        return padded.replace(shown, () => style(index, shown));
      })
      .join(GAP)
      .trimEnd();
  const head = line(
    columns.map((column) => column.title),
    (_index, text) => paint("dim", text),
  );
  const body = texts.map((row, rowIndex) =>
    line(row, (index, text) => {
      const style = rows[rowIndex]?.[index]?.style;
      return style === undefined || text === "" ? text : paint(style, text);
    }),
  );
  return [head, ...body];
}

/** Repeatedly narrows the widest column that may shrink. */
function shrink(columns: readonly Column[], natural: readonly number[], widthMax: number): number[] {
  const widths = [...natural];
  const gaps = GAP.length * (columns.length - 1);
  for (;;) {
    const tooMuch = widths.reduce((sum, width) => sum + width, gaps) - widthMax;
    if (tooMuch <= 0) return widths;
    const candidates = widths.map((width, index) => (columns[index]?.shrinks === true ? width : 0));
    const widest = greatest(candidates);
    if (widest <= SHRUNK_CELLS_MIN) return widths;
    const second = greatest(
      candidates.filter((width) => width < widest),
      SHRUNK_CELLS_MIN,
    );
    const at = candidates.indexOf(widest);
    widths[at] = widest - Math.max(1, Math.min(tooMuch, widest - second));
  }
}
