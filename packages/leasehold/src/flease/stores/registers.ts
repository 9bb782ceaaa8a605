/** Where things stand in a store; the prefix keeps them apart from Δ-leases on the same store. */
const entryPrefix = "flease/";

/** What all users of a farm must have alike stands here, once. */
export const settingsRegister = "leasehold.flease";

/** The register of an acceptor's entry. Also the prefix of all that lie below a prefix of resources. */
export function entryRegister(resource: string): string {
  return entryPrefix + resource;
}

/** The resource whose entry the register holds. */
export function resourceOf(register: string): string {
  return register.slice(entryPrefix.length);
}
