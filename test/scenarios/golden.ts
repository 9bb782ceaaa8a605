import { readFileSync, writeFileSync } from "node:fs";

/**
 * Golden traces: a file has paragraphs of commands, and below `----` their output. A line that begins with
 * `#` is a comment.
 */

/** Runs the commands of a trace in order and returns the file as it should be. */
export async function printTrace(
  text: string,
  run: (words: readonly string[]) => readonly string[] | Promise<readonly string[]>,
): Promise<string> {
  const parts: string[] = [];
  for (const paragraph of text.trim().split(/\n\s*\n/)) {
    const lines = paragraph.split("\n");
    const end = lines.indexOf("----");
    const input = end === -1 ? lines : lines.slice(0, end);
    const commands = input.filter((line) => !line.startsWith("#"));
    const output: string[] = [];
    for (const command of commands) output.push(...(await run(command.trim().split(/\s+/))));
    const printed = output.length === 0 ? ["ok"] : output;
    parts.push((commands.length === 0 ? input : [...input, "----", ...printed]).join("\n"));
  }
  return `${parts.join("\n\n")}\n`;
}

/**
 * The content of the file. With `UPDATE_SCRIPTS=1` in the environment the printed text is written to it
 * first.
 */
export function golden(path: string, printed: string): string {
  if (process.env["UPDATE_SCRIPTS"] === "1") writeFileSync(path, printed);
  return readFileSync(path, "utf8");
}
