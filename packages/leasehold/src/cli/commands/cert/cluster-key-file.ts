import { randomBytes } from "node:crypto";
import { parseClusterKeys } from "../../../runtime/security/cluster-key.js";
import { roles } from "../../../runtime/security/roles.js";
import type { Step } from "./authority.js";
import { certFailure } from "./failure.js";
import { createFile, replaceFile, secretMode, textIn } from "./files.js";

/** Comments at the ends of lines, which record the state of a rotation. */
const next = "# next";
const former = "# former";

const keyBytes = 32;
const newKey = () => randomBytes(keyBytes).toString("hex");

/** Creates a file with a single key, or with one for each role. */
export async function createClusterKey(path: string, withRoles: boolean): Promise<void> {
  const lines = withRoles ? roles.map((role) => `${role}: ${newKey()}`) : [newKey()];
  await createFile(path, `${lines.join("\n")}\n`, secretMode);
}

/** Carries out one step of a rotation, in which every key of the file gets a successor. */
export async function rotateClusterKey(path: string, step: Step): Promise<void> {
  const text = await textIn(path);
  if (text === undefined) throw certFailure("CERT_UNREADABLE", `${path} is not there`);
  parseClusterKeys(text, path);
  const changed = rotated(text, step);
  parseClusterKeys(changed, path);
  await replaceFile(path, changed, secretMode);
}

/** @throws CommandFailure `CERT_STEP` */
export function rotated(text: string, step: Step): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const isNext = (line: string) => line.endsWith(next);
  const isFormer = (line: string) => line.endsWith(former);
  const due = lines.some(isNext) ? "switch" : lines.some(isFormer) ? "finish" : "trust";
  if (due !== step) throw certFailure("CERT_STEP", `the next step of these keys is ${due} and not ${step}`);
  const after = {
    trust: () =>
      lines.flatMap((line) => (hasKey(line) ? [line, `${roleIn(line)}${newKey()} ${next}`] : [line])),
    switch: () => switched(lines),
    finish: () => lines.filter((line) => !isFormer(line)),
  };
  return `${after[step]().join("\n")}\n`;
}

/** Each key is followed by its successor, which replaces it. */
function switched(lines: readonly string[]): string[] {
  return lines.flatMap((line, index) => {
    if (line.endsWith(next)) return [];
    const successor = lines[index + 1];
    if (successor?.endsWith(next) !== true) return [line];
    return [successor.slice(0, -next.length).trimEnd(), `${line} ${former}`];
  });
}

function hasKey(line: string): boolean {
  return !line.trimStart().startsWith("#");
}

/** `client: `, or nothing for a file's single key. */
function roleIn(line: string): string {
  return /^\s*(\w+:\s*)/.exec(line)?.[1] ?? "";
}
