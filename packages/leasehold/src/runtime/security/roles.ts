/** What a participant may be, from the one that may do most. Each may also do what all that follow may do. */
export const roles = ["member", "client", "observer"] as const;

/**
 * A member is an acceptor (and usually a proposer) or keeps files; a client is a proposer only; an observer
 * asks and holds nothing.
 */
export type Role = (typeof roles)[number];

/**
 * What credentials for `role` allow their owner to be: a member may do all that a client does, and a client
 * may ask.
 */
export function rolesWithin(role: Role): readonly Role[] {
  return roles.slice(roles.indexOf(role));
}
