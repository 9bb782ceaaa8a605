/** Where leases stand in the core when the address says nothing else. */
export const keyPrefixDefault = "leasehold/";

/** Leases have a level of their own, so that something else can be put beside them. */
const level = "leases/";

/** Maps the names of resources to keys and back. */
export class Keys {
  readonly #root: string;

  constructor(prefix: string) {
    this.#root = prefix + level;
  }

  /** The key of a resource, or, of the beginning of names, what their keys begin with. */
  of(resource: string): string {
    return this.#root + resource;
  }

  resourceOf(key: string): string {
    return key.slice(this.#root.length);
  }
}
