import { createHmac } from "node:crypto";
import { invalidKey, preSharedKey } from "../tls.js";
import { roles } from "./roles.js";
import type { Role } from "./roles.js";

/** The keys of a participant, by the role that each allows. It dials with the first and accepts all. */
export type ClusterKeys = ReadonlyMap<Role, readonly [Buffer, ...Buffer[]]>;

/** The former and the new key, while a cluster changes from one to the other. */
const keysOfRoleMax = 2;

/**
 * Parses a cluster key: either hexadecimal digits alone, the key that allows every role, or lines of `ROLE:
 * DIGITS` with a key for each role. Of two keys for a role the first is used for dialing, and both are
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

/** The key with which `role` connects: its own, or one that allows more. */
export function keyFor(
  keys: ClusterKeys,
  role: Role,
): { readonly name: Role; readonly key: Buffer } | undefined {
  const name = roles.slice(0, roles.indexOf(role) + 1).findLast((each) => keys.has(each));
  return name === undefined ? undefined : { name, key: keys.get(name)![0] };
}

/**
 * A key's id, 16 hexadecimal digits, by which the accepting side chooses between two keys. Keys are random:
 * an id reveals nothing about them.
 */
export function keyId(key: Buffer): string {
  return createHmac("sha256", key).update("leasehold key id").digest("hex").slice(0, 16);
}

/** The key of a role with that id. Default: the first, as earlier builds send no id. */
export function acceptedKey(keys: ClusterKeys, role: Role, id: string | undefined): Buffer | undefined {
  const accepted = keys.get(role);
  return accepted?.find((key) => keyId(key) === id) ?? accepted?.[0];
}
