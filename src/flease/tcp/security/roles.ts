import { roles } from "../wire/identity.js";
import type { Role } from "../wire/identity.js";

/**
 * What credentials for `role` allow their owner to be: a member may do all that a client does, and a client
 * may ask.
 */
export function rolesWithin(role: Role): readonly Role[] {
  return roles.slice(roles.indexOf(role));
}

/** What an observer may ask beside the protocol. Anything new is not for observers until it stands here. */
export const observerCalls: ReadonlySet<string> = new Set([
  "status",
  "list",
  "explain",
  "watch",
  "unwatch",
  "label",
]);
