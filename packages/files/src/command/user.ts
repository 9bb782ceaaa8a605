import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline/promises";
import { exitCode, printError, printLine, usageError } from "leasehold/cli";
import { hashOf, passwordBytesMax } from "../users/password.js";
import { isUserName, parseRight, rightsMax } from "../users/users-file.js";

/** `leasehold files user NAME RIGHT…`: prints a line for the users' file. */
export async function userLine(name: string, rights: readonly string[]): Promise<number> {
  if (!isUserName(name)) throw usageError("a name has 1 to 64 letters, digits and . _ @ -");
  if (rights.length > rightsMax) throw usageError(`a user has at most ${rightsMax} rights`);
  const wrong = rights.find((right) => /\s/.test(right) || parseRight(right) === undefined);
  if (wrong !== undefined)
    throw usageError(`${JSON.stringify(wrong)} is neither r:PATH nor rw:PATH; %20 is a space`);
  const password = process.stdin.isTTY ? newPassword() : await firstLine();
  if (password === "" || Buffer.byteLength(password) > passwordBytesMax)
    throw usageError(`a password has 1 to ${passwordBytesMax} bytes`);
  printLine([name, await hashOf(password), ...rights].join(" "));
  return exitCode("ok");
}

function newPassword(): string {
  const password = randomBytes(18).toString("base64url");
  printError(`the password: ${password}`);
  return password;
}

async function firstLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) return line;
  return "";
}
