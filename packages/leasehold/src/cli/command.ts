import { CommanderError } from "./common/commander.js";
import { firstUnreadableWord } from "./common/command-bytes.js";
import { exitCode } from "./common/exit-codes.js";
import { describeFailure, usageError } from "./common/failure.js";
import { buildProgram, usageFault } from "./program.js";
import { asksForJson } from "./common/shared-options.js";
import { outputFault } from "./common/write.js";
import { printError, printErrorsAsJson } from "./output/print.js";

/** Runs one command and returns its exit code, after printing any error. */
export async function main(words: readonly string[]): Promise<number> {
  let code = exitCode("ok");
  // Set before the words are parsed, as errors in them are also printed as JSON.
  if (asksForJson(words)) printErrorsAsJson();
  try {
    const program = await buildProgram(
      (result) => {
        code = result;
      },
      words.includes("completion") ? undefined : words,
    );
    if (words.length === 0) {
      program.outputHelp();
      return exitCode("usage");
    }
    const unreadable = firstUnreadableWord(words);
    // Node decodes invalid UTF-8 to U+FFFD, so two different names could become equal.
    if (unreadable !== undefined) throw usageError(`argument ${unreadable} is no valid UTF-8`);
    await program.parseAsync([...words], { from: "user" });
    return checkedOutput(code);
  } catch (error) {
    // After requested help, commander exits with the exit code that `main.ts` has set for the process.
    const isHelp = error instanceof CommanderError && error.code === "commander.help";
    if (isHelp && words.find((word) => !word.startsWith("-")) === "help")
      return checkedOutput(exitCode("ok"));
    const fault = error instanceof CommanderError ? usageFault(error) : error;
    if (fault === undefined) return checkedOutput(exitCode("ok"));
    const { message, ...codes } = describeFailure(fault);
    printError(message, codes);
    return codes.exitCode;
  }
}

/** A command whose output could not be written, for example to a full disk, has not succeeded. */
function checkedOutput(code: number): number {
  const fault = outputFault();
  if (code !== exitCode("ok") || fault === undefined) return code;
  const unwritten = { code: "UNWRITTEN", exitCode: exitCode("unexpected") };
  printError(`the output could not be written (${fault})`, unwritten);
  return unwritten.exitCode;
}
