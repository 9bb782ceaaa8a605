import { usageError } from "../common/failure.js";

/**
 * Requires "--" before the command, and at most the name before that. Otherwise an option of the command
 * could be mistaken for one of `leasehold` (`run x ls -o json`), and a second word for the command (`run x y
 * -- true`).
 *
 * @param form the beginning of the command line, for the message
 */
export function refuseStrayWords(form: string, words: readonly string[]): void {
  const { argv } = process;
  const given = argv.includes("--") ? argv.length - 1 - argv.indexOf("--") : undefined;
  if (given === undefined) throw usageError(`put "--" before the command: ${form} -- COMMAND`);
  if (given === 0) throw usageError(`the command is missing: ${form} -- COMMAND`);
  const stray = words[0];
  if (words.length > given && stray !== undefined)
    throw usageError(
      `${JSON.stringify(stray)} stands before "--"; the command comes after it: ${form} -- COMMAND`,
    );
}
