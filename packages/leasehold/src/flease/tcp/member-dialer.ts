import type { LeaseholdError } from "../../lease/errors.js";
import type { Cluster } from "../views/cluster.js";
import { MemberAddresses } from "./member-addresses.js";
import { Refusals } from "./refusals.js";
import type { Transport } from "./transport/transport.js";

/** Dials the members of the present view and nobody else, and records why a member is not connected. */
export class MemberDialer {
  readonly #cluster: Cluster;
  readonly #transport: () => Pick<Transport, "dial" | "undial">;
  readonly #addresses: MemberAddresses;
  readonly #refusals = new Refusals();
  /** By address, the members that are dialed there. */
  #dialed: ReadonlyMap<string, string> = new Map();

  /** @param transport returns the present one: a clock fault replaces it */
  constructor(cluster: Cluster, transport: () => Pick<Transport, "dial" | "undial">) {
    this.#cluster = cluster;
    this.#transport = transport;
    const { addresses, settings } = cluster;
    this.#addresses = new MemberAddresses((id) => addresses[settings.members.indexOf(id)]);
  }

  /** Dials these members, by id. `found` holds the addresses at which members were reached. */
  dial(ids: readonly string[], found: ReadonlyMap<string, string>): void {
    this.#addresses.found(found);
    const wanted = this.#addresses.wanted(ids);
    // Removed members first: another member may have an address of theirs.
    for (const address of this.#dialed.keys()) if (!wanted.has(address)) this.#undial(address);
    this.#dialed = wanted;
    for (const [address, id] of wanted) this.#transport().dial(address, id);
  }

  #undial(address: string): void {
    this.#transport().undial(address);
    this.accepted(address);
  }

  /** The member at this address has refused this participant. */
  refused(address: string, error: LeaseholdError): void {
    this.#refusals.refusedBy(address, error);
  }

  /** The member at this address is connected, or no longer of interest. */
  accepted(address: string): void {
    this.#refusals.acceptedBy(address);
  }

  /** The members' refusal, when fewer than a majority of this many have not refused. */
  refusalOfMajority(voters: number): LeaseholdError | undefined {
    return this.#refusals.ofMajority(voters);
  }

  /** The reason why a member is not connected. */
  whyUnlinked(member: number): LeaseholdError {
    const { addresses, settings } = this.#cluster;
    return this.#refusals.why(this.#addresses.of(settings.members[member]!) ?? addresses[member]!);
  }
}
