import { LeaseholdError } from "../../lease/errors.js";
import { shortageOf } from "./shortage.js";
import { type ExitName, exitCode, exitCodeOfError } from "./exit-codes.js";

/** What programs read of an error: a code that stays, and how the process ends. */
export interface ErrorCodes {
  /** One of the library's, or the name of the exit code in capitals. */
  readonly code: string;
  readonly exitCode: number;
}

/** An end of a command that was foreseen: one line for the person, one number for the script. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  /** For programs. */
  readonly code: string;

  /** @param code default: the name of the exit code in capitals */
  constructor(exit: ExitName, message: string, code: string = exit.toUpperCase(), exitWith = exitCode(exit)) {
    super(message);
    this.name = "CommandFailure";
    this.exitCode = exitWith;
    this.code = code;
  }
}

export function usageError(message: string): CommandFailure {
  return new CommandFailure("usage", message);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, "; ").trim();
}

/**
 * What to say and how to exit for whatever was thrown. Never a stack trace: those are for authors, not for
 * users.
 */
export function describeFailure(error: unknown): ErrorCodes & { readonly message: string } {
  if (error instanceof CommandFailure) {
    const { message, code, exitCode: exit } = error;
    return { message: oneLine(message), code, exitCode: exit };
  }
  if (error instanceof LeaseholdError) {
    const { message, code } = error;
    return { message: oneLine(message), code, exitCode: exitCodeOfError(code) };
  }
  const shortage = shortageOf(error);
  if (shortage !== undefined)
    return { message: shortage, code: "EXHAUSTED", exitCode: exitCode("exhausted") };
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const message = `unexpected: ${oneLine(detail)}`;
  return { message, code: "UNEXPECTED", exitCode: exitCode("unexpected") };
}
