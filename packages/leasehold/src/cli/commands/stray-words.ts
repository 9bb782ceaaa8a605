import { usageError } from "../common/failure.js";

/**
 * The command begins after "--", and nothing but the name, if there is one, stands before: without it an
 * option of the command would be taken for one of ours (`run x ls -o json`), and a second word before it for
 * the command (`run x y -- true`).
 *
 * @param form how the command line begins, for the message.
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
