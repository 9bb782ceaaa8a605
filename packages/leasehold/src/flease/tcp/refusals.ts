import { LeaseholdError } from "../../lease/errors.js";
import { majorityOf } from "../../common/majority.js";

/**
 * Refusals by members, by address, until they accept this participant. Only members are dialed, which
 * bounds the number.
 */
export class Refusals {
  readonly #byAddress = new Map<string, LeaseholdError>();

  refusedBy(address: string, error: LeaseholdError): void {
    // A member with too many clients may have room again soon.
    if (error.code !== "UNREACHABLE") this.#byAddress.set(address, error);
  }

  acceptedBy(address: string): void {
    this.#byAddress.delete(address);
  }

  /** The reason why the member at an address is not connected. */
  why(address: string): LeaseholdError {
    return this.#byAddress.get(address) ?? new LeaseholdError("UNREACHABLE", `no connection to ${address}`);
  }

  /** The common refusal, when fewer than a majority of this many have not refused. */
  ofMajority(members: number): LeaseholdError | undefined {
    const [first] = this.#byAddress.values();
    const { size } = this.#byAddress;
    if (first === undefined || members - size >= majorityOf(members)) return undefined;
    const text = `${size} of the ${members} members refuse this participant: ${first.message}`;
    return new LeaseholdError(first.code, text);
  }
}
