/** Where things stand in a store. The farm's own register is named in `store.ts`. */
const leasePrefix = "lease/";

/** The register of a resource's lease. Also the prefix of all that lie below a prefix of resources. */
export function leaseRegister(resource: string): string {
  return leasePrefix + resource;
}

/** The resource whose lease the register holds. */
export function resourceOf(register: string): string {
  return register.slice(leasePrefix.length);
}

/** Where a resource's holder finds what others want of it, if they cannot write into its record. */
export function questionRegister(resource: string): string {
  return `question/${resource}`;
}
