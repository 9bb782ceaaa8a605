/** The escape sequences in use, and the decision whether to use them. */

const ESC = "\u001b[";

const styles = {
  bold: "1",
  dim: "2",
  inverse: "7",
  red: "31",
  green: "32",
  yellow: "33",
  blue: "34",
  cyan: "36",
} as const;

export type Style = keyof typeof styles;

/** Styles a text, or returns it unchanged without colours. */
export type Paint = (style: Style, text: string) => string;

export const plain: Paint = (_style, text) => text;
export const colours: Paint = (style, text) => `${ESC}${styles[style]}m${text}${ESC}0m`;

/** Colours are for terminals, unless the user has declined them (no-color.org). */
export function paintFor(isTerminal: boolean, environment: NodeJS.ProcessEnv): Paint {
  const declined = (environment["NO_COLOR"] ?? "") !== "" || environment["TERM"] === "dumb";
  return isTerminal && !declined ? colours : plain;
}

/** Sequences for full-screen programs. */
export const screen = {
  enter: `${ESC}?1049h${ESC}?25l${ESC}2J`,
  leave: `${ESC}?25h${ESC}?1049l`,
  clear: `${ESC}2J`,
  /** Moves to the beginning of a line; the first is 1. */
  line: (number: number): string => `${ESC}${number};1H`,
  clearToEndOfLine: `${ESC}K`,
  /** Makes the terminal show only complete frames. Terminals without support ignore it. */
  beginFrame: `${ESC}?2026h`,
  endFrame: `${ESC}?2026l`,
} as const;
