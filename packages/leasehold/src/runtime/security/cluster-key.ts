import { createHmac } from "node:crypto";
import { invalidKey, preSharedKey } from "../tls.js";
import { roles } from "./roles.js";
import type { Role } from "./roles.js";

/**
 * A participant's keys, by the role that each allows. It dials with the first key of a role and accepts all.
 */
export type ClusterKeys = ReadonlyMap<Role, readonly [Buffer, ...Buffer[]]>;

/** Two, so that a cluster can change from one key to the next. */
const keysOfRoleMax = 2;

/**
 * Parses a cluster key: either hexadecimal digits alone, the key that allows every role, or lines of `ROLE:
 * DIGITS` with a key for each role. If a role has two keys, the first is used for dialing and both are
 * accepted. `#` begins a comment. Messages never contain secrets.
 *
 * @throws LeaseholdError `INVALID_CONFIG`.
 */
export function parseClusterKeys(text: string, source: string): ClusterKeys {
  const keys = new Map<Role, [Buffer, ...Buffer[]]>();
  for (const line of text.split("\n").map((each) => each.replace(/#.*/, "").trim())) {
    if (line === "") continue;
    const [, name = "member", digits = ""] = /^(?:(\w+):\s*)?(\S*)$/.exec(line) ?? [];
    const role = roles.find((each) => each === name);
    if (role === undefined) {
      throw invalidKey(
        source,
        "each line should be a key, or one of member, client, observer, a colon and its key",
      );
    }
    const key = preSharedKey(digits, source);
    const former = keys.get(role);
    if (former?.length === keysOfRoleMax)
      throw invalidKey(source, `there are more than ${keysOfRoleMax} keys for ${role}`);
    if (former === undefined) keys.set(role, [key]);
    else former.push(key);
  }
  if (keys.size === 0) throw invalidKey(source, "there is no key in it");
  return keys;
}

/** The key with which `role` connects: its own or, if it has none, one that allows more. */
export function keyFor(
  keys: ClusterKeys,
  role: Role,
): { readonly name: Role; readonly key: Buffer } | undefined {
  const name = roles.slice(0, roles.indexOf(role) + 1).findLast((each) => keys.has(each));
  return name === undefined ? undefined : { name, key: keys.get(name)![0] };
}

/**
 * A key's id, 16 hexadecimal digits, by which the accepting side chooses between two keys. Keys are random,
 * so an id reveals nothing about them.
 */
export function keyId(key: Buffer): string {
  return createHmac("sha256", key).update("leasehold key id").digest("hex").slice(0, 16);
}

/** The role's key with that id. Without an id it is the first key, because earlier builds send none. */
export function acceptedKey(keys: ClusterKeys, role: Role, id: string | undefined): Buffer | undefined {
  const accepted = keys.get(role);
  return accepted?.find((key) => keyId(key) === id) ?? accepted?.[0];
}
