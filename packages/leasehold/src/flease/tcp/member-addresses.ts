/** Where a member was found, and where the cluster said then that it is. */
interface Found {
  readonly found: string;
  readonly named: string | undefined;
}

/**
 * Where members are dialed. A client may have been given another address of a member than the cluster has for
 * it: that one counts as long as the cluster has the member where it was then.
 */
export class MemberAddresses {
  readonly #found = new Map<string, Found>();
  readonly #named: (id: string) => string | undefined;

  /** @param named where the cluster says that a member is */
  constructor(named: (id: string) => string | undefined) {
    this.#named = named;
  }

  /** Members that say so were found at these addresses, by their ids. */
  found(addresses: ReadonlyMap<string, string>): void {
    for (const [id, found] of addresses) this.#found.set(id, { found, named: this.#named(id) });
  }

  of(id: string): string | undefined {
    const named = this.#named(id);
    const known = this.#found.get(id);
    return known !== undefined && known.named === named ? known.found : named;
  }

  /** What to dial for these members: at each address one. Another may have been there before. */
  wanted(ids: readonly string[]): Map<string, string> {
    const wanted = new Map<string, string>();
    for (const id of ids) {
      const address = this.of(id);
      if (address !== undefined) wanted.set(address, id);
    }
    return wanted;
  }
}
