import { randomBytes } from "node:crypto";
import { exitCode, printErrorLine, printLine } from "leasehold/cli";
import { hashOf } from "../http/admission.js";
import { parseUsers } from "../rights/users.js";

/** Prints a line for the file of users, and the token to stderr. No file contains the token. */
export function printUser(name: string, rights: readonly string[]): number {
  const token = randomBytes(24).toString("base64url");
  const line = [name, `sha256:${hashOf(token)}`, ...rights].join(" ");
  parseUsers(line);
  printLine(line);
  printErrorLine(`token: ${token}`);
  return exitCode("ok");
}
