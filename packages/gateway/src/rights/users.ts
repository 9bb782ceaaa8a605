import { LeaseholdError } from "leasehold/common";
import { type Action, Rights, type Rule, actions } from "./rights.js";

/** The bounds of a file of users: each line of it is in memory. */
export const usersMax = 10_000;
const rightsMax = 64;
const lineLengthMax = 16_384;

export interface User {
  readonly name: string;
  readonly rights: Rights;
}

/** The users of a gateway. */
export interface Users {
  /** By the SHA-256 of their tokens, in hexadecimal digits. */
  readonly byToken: ReadonlyMap<string, User>;
  /** By the common name of their certificates. */
  readonly byCertificate: ReadonlyMap<string, User>;
}

const nameForm = /^[A-Za-z0-9._@-]{1,64}$/;

/**
 * A line has a name, `sha256:` and the hash of a token, or `certificate` for who proves the name with one,
 * and rights: `hold:PREFIX`, with `%20` for a space in a prefix, and nothing after the colon for all names.
 * Empty lines and lines from `#` on are comments.
 *
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function parseUsers(text: string): Users {
  const byToken = new Map<string, User>();
  const byCertificate = new Map<string, User>();
  const names = new Set<string>();
  for (const [index, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const number = index + 1;
    const { user, hash } = parseLine(trimmed, number);
    if (names.has(user.name)) throw wrong(number, `user ${user.name} is there twice`);
    if (hash !== undefined && byToken.has(hash)) throw wrong(number, "another user has the same token");
    names.add(user.name);
    if (names.size > usersMax) throw wrong(number, `there are more than ${usersMax} users`);
    if (hash === undefined) byCertificate.set(user.name, user);
    else byToken.set(hash, user);
  }
  return { byToken, byCertificate };
}

function parseLine(line: string, number: number): { user: User; hash?: string } {
  if (line.length > lineLengthMax) throw wrong(number, `it is longer than ${lineLengthMax} characters`);
  const [name = "", proof = "", ...rights] = line.split(/\s+/);
  if (!nameForm.test(name)) throw wrong(number, "a name has 1 to 64 letters, digits and . _ @ -");
  const hash = /^sha256:([0-9a-f]{64})$/.exec(proof)?.[1];
  if (hash === undefined && proof !== "certificate")
    throw wrong(number, "the second word is neither sha256:HASH of a token nor certificate");
  if (rights.length > rightsMax) throw wrong(number, `a user has at most ${rightsMax} rights`);
  const user = { name, rights: new Rights(rights.map((text) => parseRight(text, number))) };
  return { user, ...(hash !== undefined && { hash }) };
}

function parseRight(text: string, number: number): Rule {
  const colon = text.indexOf(":");
  const action = actions.find((each) => each === text.slice(0, colon));
  if (action === undefined)
    throw wrong(
      number,
      `${JSON.stringify(text)} is no right: ${actions.map((each) => `${each}:PREFIX`).join(", ")}`,
    );
  try {
    return { prefix: decodeURIComponent(text.slice(colon + 1)), may: [action satisfies Action] };
  } catch {
    throw wrong(number, `the prefix in ${JSON.stringify(text)} is no percent-encoded text`);
  }
}

const wrong = (number: number, why: string): LeaseholdError =>
  new LeaseholdError("INVALID_CONFIG", `line ${number} of the gateway's users: ${why}`);
