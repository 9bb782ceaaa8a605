/** The roles of participants, from the most privileged. Each includes those after it. */
export const roles = ["member", "client", "observer"] as const;

/**
 * A member is an acceptor (and usually a proposer) or keeps files; a client is a proposer only; an observer
 * queries and holds nothing.
 */
export type Role = (typeof roles)[number];

/** The roles that credentials for `role` allow: a member may act as a client, and a client as an observer. */
export function rolesWithin(role: Role): readonly Role[] {
  return roles.slice(roles.indexOf(role));
}
