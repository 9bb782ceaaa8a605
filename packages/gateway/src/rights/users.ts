import { LeaseholdError } from "leasehold/common";
import { type Action, Rights, type Rule, actions } from "./rights.js";

/** The limits of a file of users: each of its lines is in memory. */
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
  /** By the subject of their JSON Web Tokens. */
  readonly bySubject: ReadonlyMap<string, User>;
}

/** Kubernetes' subjects contain colons, and those of other issuers a bar. */
const nameForm = /^[A-Za-z0-9._@:|/-]{1,255}$/;

/**
 * A line has a name, a proof and rights. The proof is `sha256:` and the hash of a token, or `certificate` or
 * `jwt` if a certificate or a JSON Web Token proves the name. Rights are `hold:PREFIX`, with `%20` for a
 * space in a prefix, and nothing after the colon for all names. Empty lines and lines that begin with `#` are
 * ignored.
 *
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function parseUsers(text: string): Users {
  const byToken = new Map<string, User>();
  const byCertificate = new Map<string, User>();
  const bySubject = new Map<string, User>();
  const names = new Set<string>();
  for (const [index, line] of text.split("\n").entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const number = index + 1;
    const { user, proof } = parseLine(trimmed, number);
    if (names.has(user.name)) throw wrong(number, `user ${user.name} is there twice`);
    if (byToken.has(proof)) throw wrong(number, "another user has the same token");
    names.add(user.name);
    if (names.size > usersMax) throw wrong(number, `there are more than ${usersMax} users`);
    if (proof === "certificate") byCertificate.set(user.name, user);
    else if (proof === "jwt") bySubject.set(user.name, user);
    else byToken.set(proof, user);
  }
  return { byToken, byCertificate, bySubject };
}

function parseLine(line: string, number: number): { user: User; proof: string } {
  if (line.length > lineLengthMax) throw wrong(number, `it is longer than ${lineLengthMax} characters`);
  const [name = "", proof = "", ...rights] = line.split(/\s+/);
  if (!nameForm.test(name)) throw wrong(number, "a name has 1 to 255 letters, digits and . _ @ : | / -");
  const form = /^(?:sha256:([0-9a-f]{64})|certificate|jwt)$/.exec(proof);
  if (form === null)
    throw wrong(number, "the second word is none of sha256:HASH of a token, certificate and jwt");
  if (rights.length > rightsMax) throw wrong(number, `a user has at most ${rightsMax} rights`);
  const user = { name, rights: new Rights(rights.map((text) => parseRight(text, number))) };
  return { user, proof: form[1] ?? form[0] };
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
