import { LeaseholdError } from "../../lease/errors.js";
import { shortageOf } from "./shortage.js";
import { type ExitName, exitCode, exitCodeOfError } from "./exit-codes.js";

/** An end of a command that was foreseen: one line for the person, one number for the script. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(exit: ExitName | number, message: string) {
    super(message);
    this.name = "CommandFailure";
    this.exitCode = typeof exit === "number" ? exit : exitCode(exit);
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
export function describeFailure(error: unknown): { message: string; exitCode: number } {
  if (error instanceof CommandFailure) return { message: oneLine(error.message), exitCode: error.exitCode };
  if (error instanceof LeaseholdError) {
    return { message: oneLine(error.message), exitCode: exitCodeOfError(error.code) };
  }
  const shortage = shortageOf(error);
  if (shortage !== undefined) return { message: shortage, exitCode: exitCode("exhausted") };
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { message: `unexpected: ${oneLine(detail)}`, exitCode: exitCode("unexpected") };
}
