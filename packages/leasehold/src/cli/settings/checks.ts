import type { Command } from "../common/commander.js";

/** Refuses options with which the command could not start, without starting it. */
type Check = (options: Record<string, unknown>) => Promise<void>;

const checks = new WeakMap<Command, Check>();

/** Sets the check that `leasehold config check` runs for this command. */
export function checkedBy(command: Command, check: Check): void {
  checks.set(command, check);
}

export function checkOf(command: Command): Check | undefined {
  return checks.get(command);
}
