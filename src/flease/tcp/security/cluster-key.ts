import { LeaseholdError } from "../../../lease/errors.js";
import { roles } from "../wire/identity.js";
import type { Role } from "../wire/identity.js";

/**
 * 256 bits cannot be guessed, also not offline from recorded handshakes, which would be possible with a short
 * key.
 */
const KEY_BYTES_MIN = 32;

/** OpenSSL takes up to 512 bytes; more than this gives nothing. */
const KEY_BYTES_MAX = 64;

/**
 * 32 random bytes have fewer different values than this once in 10^30 times; a pattern typed by hand, always.
 */
const DIFFERENT_BYTES_MIN = 10;

/** The keys of a participant, by the role that each allows. */
export type ClusterKeys = ReadonlyMap<Role, Buffer>;

/**
 * Reads a cluster key: either hexadecimal digits alone, the key that allows every role, or lines of `ROLE:
 * DIGITS` with a key for each role. `#` begins a comment. What is secret is in no message.
 *
 * @throws LeaseholdError `INVALID_CONFIG`.
 */
export function parseClusterKeys(text: string, source: string): ClusterKeys {
  const keys = new Map<Role, Buffer>();
  for (const line of text.split("\n").map((each) => each.replace(/#.*/, "").trim())) {
    if (line === "") continue;
    const [, name = "member", digits = ""] = /^(?:(\w+):\s*)?(\S*)$/.exec(line) ?? [];
    const role = roles.find((each) => each === name);
    if (role === undefined || keys.has(role)) {
      throw invalid(
        source,
        "each line should be a key, or one of member, client, observer, a colon and its key",
      );
    }
    keys.set(role, keyOf(digits, source));
  }
  if (keys.size === 0) throw invalid(source, "there is no key in it");
  return keys;
}

function keyOf(digits: string, source: string): Buffer {
  const even = /^(?:[0-9a-f]{2})*$/i.test(digits);
  if (!even || digits.length < 2 * KEY_BYTES_MIN || digits.length > 2 * KEY_BYTES_MAX) {
    throw invalid(source, `a key is ${2 * KEY_BYTES_MIN} to ${2 * KEY_BYTES_MAX} hexadecimal digits`);
  }
  const key = Buffer.from(digits, "hex");
  if (new Set(key).size < DIFFERENT_BYTES_MIN) throw invalid(source, "the key is not random");
  return key;
}

function invalid(source: string, why: string): LeaseholdError {
  return new LeaseholdError(
    "INVALID_CONFIG",
    `${source}: ${why}; a passphrase is not enough: make a key with \`openssl rand -hex 32\``,
  );
}

/** The key with which `role` connects: its own, or one that allows more. */
export function keyFor(
  keys: ClusterKeys,
  role: Role,
): { readonly name: Role; readonly key: Buffer } | undefined {
  const name = roles.slice(0, roles.indexOf(role) + 1).findLast((each) => keys.has(each));
  return name === undefined ? undefined : { name, key: keys.get(name)! };
}
