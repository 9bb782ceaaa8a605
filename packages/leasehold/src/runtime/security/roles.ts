/** The roles of participants, the most privileged first. Each includes those after it. */
export const roles = ["member", "client", "observer"] as const;

/**
 * A member is an acceptor (and usually a proposer) or keeps files; a client is only a proposer; an observer
 * makes queries and holds no leases.
 */
export type Role = (typeof roles)[number];

/** The roles that credentials for `role` allow: a member may act as a client, and a client as an observer. */
export function rolesWithin(role: Role): readonly Role[] {
  return roles.slice(roles.indexOf(role));
}
