import { CommandFailure } from "./failure.js";

/** The stable codes of faults in a configuration; the last three are warnings. */
export type ConfigCode =
  | "CONFIG_UNREADABLE"
  | "CONFIG_SYNTAX"
  | "CONFIG_DUPLICATE"
  | "CONFIG_UNKNOWN"
  | "CONFIG_TYPE"
  | "CONFIG_VALUE"
  | "CONFIG_SECRET"
  | "CONFIG_CONFLICT"
  | "CONFIG_MISSING"
  | "CONFIG_UNUSED"
  | "CONFIG_EXPOSED"
  | "CONFIG_VARIABLE";

const warnings: readonly string[] = [
  "CONFIG_UNUSED",
  "CONFIG_EXPOSED",
  "CONFIG_VARIABLE",
] satisfies ConfigCode[];

export interface ConfigFault {
  /** {@link ConfigCode}, or a code of the library. */
  readonly code: string;
  /** The position of the fault: a file and line, a variable or an option. */
  readonly where?: string | undefined;
  readonly message: string;
}

export function faultLine({ where, message }: ConfigFault): string {
  return where === undefined ? message : `${where}: ${message}`;
}

export function isWarning({ code }: ConfigFault): boolean {
  return warnings.includes(code);
}

/** All of them as one error, with the code of the first. */
export function failureOf(faults: readonly [ConfigFault, ...ConfigFault[]]): CommandFailure {
  return new CommandFailure("usage", faults.map(faultLine).join("; "), faults[0].code);
}

export function configFailure(code: ConfigCode, message: string, where?: string): CommandFailure {
  return failureOf([{ code, message, where }]);
}
