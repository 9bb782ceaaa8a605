import { usageError } from "../common/failure.js";

/**
 * The command begins after "--", and nothing but the name stands before: without it an option of the command
 * would be taken for one of ours (`run x ls -o json`), and a second word before it for the command
 * (`run x y -- true`).
 */
export function refuseStrayWords(command: string, words: readonly string[]): void {
  const { argv } = process;
  const given = argv.includes("--") ? argv.length - 1 - argv.indexOf("--") : undefined;
  if (given === undefined)
    throw usageError(`put "--" between the name and the command: ${command} NAME -- COMMAND`);
  const stray = words[0];
  if (words.length > given && stray !== undefined)
    throw usageError(
      `${JSON.stringify(stray)} stands before "--", where only the name does; the command comes after it`,
    );
}
