import { Option } from "commander";
import { WAIT_DEFAULT } from "./common/settings.js";

/** Takes the exit code of the command that ran. */
export type Finish = (code: number) => void;

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`;
}

/** The options of commands that take a lease. */
export const ttlOption = () =>
  new Option("--ttl <duration>", "length of the lease (default: the longest that the cluster allows)");
export const waitOption = () =>
  new Option("--wait <duration>", `how long to wait for a turn (default: ${WAIT_DEFAULT})`);
export const attachOption = () =>
  new Option(
    "--attach <handle>",
    "instead of a name: go on with the detached lease of this handle (hold --detach); on stores that compare and set, and cores",
  ).conflicts(["wait", "try"]);
export const tryOption = () =>
  new Option("--try", "do not wait: fail when another holds the lease").conflicts("wait");
