import { LeaseholdError, type Leases, open } from "leasehold";

/** Takes the place of a Redis client: open leases, or the addresses of a ground, separated by spaces. */
export type Client = Leases | string;

const oneGround = "Redlock takes one Leases, or the addresses of one ground";

/** The number of addresses that one ground may have. */
const addressesMax = 1_000;

/** The leases of a {@link Redlock}. Addresses are opened on first use. */
export class Ground {
  readonly client: Client;
  readonly #addresses: readonly string[];
  #opening: Promise<Leases> | undefined;
  #isClosed = false;

  constructor(given: Client | Iterable<Client>) {
    const clients = typeof given === "string" || !(Symbol.iterator in given) ? [given] : [...given];
    const addresses = clients.filter((client) => typeof client === "string");
    const leases = clients.find((client) => typeof client !== "string");
    if (clients.length === 0 || (leases !== undefined && clients.length > 1))
      throw new LeaseholdError("INVALID_CONFIG", oneGround);
    this.client = leases ?? addresses.join(" ");
    this.#addresses = addresses;
    if (leases !== undefined) this.#opening = Promise.resolve(leases);
  }

  /** @throws LeaseholdError as `open` does; the next call then retries. `CLOSED` after {@link close}. */
  async leases(): Promise<Leases> {
    if (this.#isClosed) throw new LeaseholdError("CLOSED");
    const opening = (this.#opening ??= open(...few(this.#addresses)));
    try {
      return await opening;
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const leases = await this.#opening?.catch(() => undefined);
    await leases?.close();
  }
}

function few(addresses: readonly string[]): readonly string[] {
  if (addresses.length <= addressesMax) return addresses;
  throw new LeaseholdError("INVALID_CONFIG", `a ground has at most ${addressesMax} addresses`);
}
