/** The address where a member was reached, and its address in the cluster at that time. */
interface Found {
  readonly found: string;
  readonly named: string | undefined;
}

/**
 * The addresses at which members are dialed. A client may reach a member at another address than its address
 * in the cluster: that address counts while the cluster's address stays the same.
 */
export class MemberAddresses {
  readonly #found = new Map<string, Found>();
  readonly #named: (id: string) => string | undefined;

  /** @param named returns a member's address in the cluster */
  constructor(named: (id: string) => string | undefined) {
    this.#named = named;
  }

  /** Records the addresses at which members were reached, by id. */
  found(addresses: ReadonlyMap<string, string>): void {
    for (const [id, found] of addresses) this.#found.set(id, { found, named: this.#named(id) });
  }

  of(id: string): string | undefined {
    const named = this.#named(id);
    const known = this.#found.get(id);
    return known !== undefined && known.named === named ? known.found : named;
  }

  /**
   * Addresses to dial for these members. Each address has one member: a former member may have had the same
   * address.
   */
  wanted(ids: readonly string[]): Map<string, string> {
    const wanted = new Map<string, string>();
    for (const id of ids) {
      const address = this.of(id);
      if (address !== undefined) wanted.set(address, id);
    }
    return wanted;
  }
}
