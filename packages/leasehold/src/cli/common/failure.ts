import { LeaseholdError } from "../../lease/errors.js";
import { shortageOf } from "./shortage.js";
import { type ExitName, exitCode, exitCodeOfError } from "./exit-codes.js";

/** An error for programs: a stable code, and the exit code. */
export interface ErrorCodes {
  /** A code of the library, or the exit code's name in capitals. */
  readonly code: string;
  readonly exitCode: number;
}

/** An expected failure of a command: one line for humans, one number for scripts. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  /** Details for programs. */
  readonly code: string;

  /** @param code default: the exit code's name in capitals */
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

/** The message and exit code of any error. Never includes a stack trace, which is for developers. */
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
