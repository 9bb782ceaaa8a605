import { invalidKey, preSharedKey } from "../tls.js";
import { roles } from "./roles.js";
import type { Role } from "./roles.js";

/** The keys of a participant, by the role that each allows. */
export type ClusterKeys = ReadonlyMap<Role, Buffer>;

/**
 * Parses a cluster key: either hexadecimal digits alone, the key that allows every role, or lines of `ROLE:
 * DIGITS` with a key for each role. `#` begins a comment. Messages never contain secrets.
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
      throw invalidKey(
        source,
        "each line should be a key, or one of member, client, observer, a colon and its key",
      );
    }
    keys.set(role, preSharedKey(digits, source));
  }
  if (keys.size === 0) throw invalidKey(source, "there is no key in it");
  return keys;
}

/** The key with which `role` connects: its own, or one that allows more. */
export function keyFor(
  keys: ClusterKeys,
  role: Role,
): { readonly name: Role; readonly key: Buffer } | undefined {
  const name = roles.slice(0, roles.indexOf(role) + 1).findLast((each) => keys.has(each));
  return name === undefined ? undefined : { name, key: keys.get(name)! };
}
