/** Names of registers in a store; the prefix separates them from Δ-leases on the same store. */
const entryPrefix = "flease/";

/** The settings that all users of a farm share, written once. */
export const settingsRegister = "leasehold.flease";

/**
 * The register of an acceptor's entry. Applied to a prefix of resources, it is the prefix of their registers.
 */
export function entryRegister(resource: string): string {
  return entryPrefix + resource;
}

/** The resource of the register's entry. */
export function resourceOf(register: string): string {
  return register.slice(entryPrefix.length);
}
