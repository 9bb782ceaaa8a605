import { InvalidArgumentError, Option } from "./common/commander.js";
import { limitMax } from "../lease/slots.js";
import { settingOption } from "./settings/setting-option.js";

/** Receives the exit code of the command that ran. */
export type Finish = (code: number) => void;

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`;
}

/** The options of commands that acquire a lease. */
export const ttlOption = () => settingOption("ttl");
export const waitOption = () => settingOption("wait");
export const limitOption = () =>
  new Option("-n, --limit <n>", "a counted lease: at most so many have it at a time, each with a slot")
    .argParser(wholeNumber(1, limitMax))
    .conflicts(["shared", "exclusive"]);
export const sharedOption = () =>
  new Option(
    "--shared",
    "as a reader, of a name that ends with /~rw: beside other readers, but not beside a writer",
  )
    // A reader's lease has no handle.
    .conflicts(["exclusive", "detach"]);
export const exclusiveOption = () =>
  new Option(
    "--exclusive",
    "as a writer, of a name that ends with /~rw: alone, when the readers have gone; so is a call without --shared",
  );
export const attachOption = () =>
  new Option(
    "--attach <handle>",
    "instead of a name: go on with the detached lease of this handle (hold --detach); on stores that compare and set, and cores",
  ).conflicts(["wait", "try", "limit", "shared", "exclusive", "fair"]);
export const fairOption = () =>
  new Option(
    "--fair",
    "wait in order: first come, first served among those who say so; not on stores",
  ).conflicts("try");
/** For long-running commands. */
export const metricsOption = () => settingOption("metricsAddress");

export const logFormatOption = () => settingOption("logFormat");
export const logLevelOption = () => settingOption("logLevel");

export const tryOption = () =>
  new Option("--try", "do not wait: fail when another holds the lease").conflicts("wait");

/** A parser of whole numbers, for commander. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`It is a number from ${min} to ${max}.`);
    return value;
  };
}
