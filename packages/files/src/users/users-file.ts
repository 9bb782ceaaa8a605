import { LeaseholdError } from "leasehold/common";
import { type PasswordHash, parseHash } from "./password.js";
import { type Right, Rights } from "./rights.js";

/** The limits of a users' file: all its lines are held in memory. */
export const usersMax = 1_000;
export const rightsMax = 64;
export const lineLengthMax = 16_384;

export interface User {
  readonly name: string;
  readonly hash: PasswordHash;
  readonly rights: Rights;
}

const nameForm = /^[A-Za-z0-9._@-]{1,64}$/;

/**
 * Users by name. A line has a name, the hash of a password, and rights: `r:PATH` allows reading, `rw:PATH`
 * also writing, and `rw:/` everything; `%20` is a space in a path. Empty lines are ignored, and lines that
 * begin with `#` are comments.
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function parseUsers(text: string): ReadonlyMap<string, User> {
  const users = new Map<string, User>();
  for (const [index, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const user = parseLine(trimmed, index + 1);
    if (users.has(user.name)) throw wrong(index + 1, `user ${user.name} is there twice`);
    users.set(user.name, user);
    if (users.size > usersMax) throw wrong(index + 1, `there are more than ${usersMax} users`);
  }
  return users;
}

function parseLine(line: string, number: number): User {
  if (line.length > lineLengthMax) throw wrong(number, `it is longer than ${lineLengthMax} characters`);
  const [name = "", hashText = "", ...rights] = line.split(/\s+/);
  if (!nameForm.test(name)) throw wrong(number, "a name has 1 to 64 letters, digits and . _ @ -");
  const hash = parseHash(hashText);
  if (hash === undefined) throw wrong(number, "the second word is no hash of `leasehold files user`");
  if (rights.length > rightsMax) throw wrong(number, `a user has at most ${rightsMax} rights`);
  const list = rights.map((text) => {
    const right = parseRight(text);
    if (right === undefined) throw wrong(number, `${JSON.stringify(text)} is neither r:PATH nor rw:PATH`);
    return right;
  });
  return { name, hash, rights: new Rights(list) };
}

/** `r:PATH` or `rw:PATH`, with or without a slash at either end of the path. */
export function parseRight(text: string): Right | undefined {
  const match = /^(rw?):(.+)$/.exec(text);
  if (match === null) return undefined;
  try {
    const parts = match[2]!
      .replaceAll(/^\/|\/$/g, "")
      .split("/")
      .map(decodeURIComponent);
    const path = parts.join("/");
    const isWrong = path !== "" && parts.some((part) => /^\.{0,2}$|[/\p{Cc}]/u.test(part));
    return isWrong ? undefined : { path, mayWrite: match[1] === "rw" };
  } catch {
    return undefined;
  }
}

export function isUserName(name: string): boolean {
  return nameForm.test(name);
}

function wrong(line: number, why: string): LeaseholdError {
  return new LeaseholdError("INVALID_CONFIG", `line ${line} of the users: ${why}`);
}
