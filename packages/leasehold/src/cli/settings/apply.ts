import type { Command } from "../common/commander.js";
import { programOf } from "../common/shared-options.js";
import { failureOf } from "../common/config-faults.js";
import { type Resolved, resolveSettings, takeSettings } from "./resolve.js";
import type { SettingsFile } from "./settings-file.js";

/** The variable of `--config`. */
export const configVariable = "LEASEHOLD_CONFIG";

/** The settings that this process uses. */
export interface Applied {
  readonly command: Command;
  readonly path: string | undefined;
  readonly resolved: Resolved;
}

let applied: Applied | undefined;

/** The settings of this process's command; `undefined` before it runs. */
export function appliedSettings(): Applied | undefined {
  return applied;
}

/** The settings file named by the command line or the environment. */
export function configPathOf(command: Command, environment: NodeJS.ProcessEnv): string | undefined {
  const given: unknown = programOf(command).getOptionValue("config");
  return typeof given === "string" ? given : environment[configVariable] || undefined;
}

/** The module is loaded only if there is a file, as it is not in the command's bundle. */
export async function readConfig(path: string | undefined): Promise<SettingsFile | undefined> {
  if (path === undefined) return undefined;
  const { readSettings } = await import("./settings-file.js");
  return readSettings(path);
}

/**
 * Gives a command that is about to run its settings, from flags, the environment or the file, in this order
 * of precedence.
 *
 * @throws CommandFailure with a code of `faults.ts`
 */
export async function applySettings(command: Command): Promise<void> {
  const path = configPathOf(command, process.env);
  const file = await readConfig(path);
  const resolved = resolveSettings(command, process.env, file);
  const [first, ...others] = [...(file?.faults ?? []), ...resolved.faults];
  if (first !== undefined) throw failureOf([first, ...others]);
  takeSettings(resolved);
  applied = { command, path, resolved };
}
