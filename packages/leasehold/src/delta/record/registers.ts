/** The names of registers. The farm's own register is named in `store.ts`. */
const leasePrefix = "lease/";

/** The register of a resource's lease, and the prefix of the registers below a prefix of resources. */
export function leaseRegister(resource: string): string {
  return leasePrefix + resource;
}

/** The resource whose lease is in the register. */
export function resourceOf(register: string): string {
  return register.slice(leasePrefix.length);
}

/** The register for requests to a resource's holder, used where others cannot write into its record. */
export function requestRegister(resource: string): string {
  return `question/${resource}`;
}
