import { hostname } from "node:os";

/** The maximum length of a label, in bytes of UTF-8. */
export const labelBytesMax = 256;

/** A participant's name. The default, host and process id, lets people identify the process. */
export function clientName(name: string | undefined): string {
  return (name ?? `${hostname()}-${process.pid}`).replaceAll(/[^A-Za-z0-9_-]/g, "-").slice(0, 64) || "client";
}

/** The label of a participant in this process: host, process id and note. */
export function labelOf(note: string | undefined): string {
  return fitLabel(`${hostname()} pid ${process.pid}${note === undefined ? "" : `: ${note}`}`);
}

/** The text, truncated to the maximum length of a label. */
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
