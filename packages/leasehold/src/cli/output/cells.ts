/** Measures texts in terminal columns, and truncates or pads them to a width. */

/**
 * Ranges of characters that terminals show in two columns: East Asian wide and full-width forms, and emoji.
 */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1f9ff],
  [0x20000, 0x3fffd],
];

const ESCAPES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");
/** Combining marks, and format characters. */
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;

function characterCells(character: string): number {
  const point = character.codePointAt(0) ?? 0;
  if (point < 0x300) return 1;
  if (ZERO_WIDTH.test(character)) return 0;
  return WIDE.some(([from, to]) => point >= from && point <= to) ? 2 : 1;
}

/** The text without colours. */
export const unpainted = (text: string): string => text.replaceAll(ESCAPES, "");

/** The number of columns of a text, without its colour sequences. */
export function cellsOf(text: string): number {
  let cells = 0;
  for (const character of unpainted(text)) cells += characterCells(character);
  return cells;
}

/**
 * The text if it fits, otherwise the part that fits together with a final "…". Only for text without colours.
 */
export function cut(text: string, cellsMax: number): string {
  if (cellsOf(text) <= cellsMax) return text;
  let kept = "";
  let cells = 0;
  for (const character of text) {
    cells += characterCells(character);
    if (cells > cellsMax - 1) break;
    kept += character;
  }
  return cellsMax < 1 ? "" : `${kept}…`;
}

export function pad(text: string, cells: number, align: "left" | "right" = "left"): string {
  const blanks = " ".repeat(Math.max(0, cells - cellsOf(text)));
  return align === "left" ? text + blanks : blanks + text;
}

/**
 * Makes text from others, such as names of holders, harmless: control characters could move the cursor or
 * rename the window.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}
