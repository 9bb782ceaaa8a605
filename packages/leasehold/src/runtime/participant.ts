import { hostname } from "node:os";

/** Bytes of a label in UTF-8. */
export const labelBytesMax = 256;

/** Names end up in tables that people read: host and process tell them where to look. */
export function clientName(name: string | undefined): string {
  return (name ?? `${hostname()}-${process.pid}`).replaceAll(/[^A-Za-z0-9_-]/g, "-").slice(0, 64) || "client";
}

/** What a participant of this process says of itself: where it is, and its note. */
export function labelOf(note: string | undefined): string {
  return fitLabel(`${hostname()} pid ${process.pid}${note === undefined ? "" : `: ${note}`}`);
}

/** The text if it is short enough, else as many of its characters as are. */
export function fitLabel(text: string): string {
  let fitting = "";
  let bytes = 0;
  for (const character of text.replaceAll(/\p{Cc}/gu, " ")) {
    bytes += Buffer.byteLength(character);
    if (bytes > labelBytesMax) break;
    fitting += character;
  }
  return fitting;
}
