import { LeaseholdError } from "../../lease/errors.js";
import { majorityOf } from "../../common/majority.js";

/**
 * Why members refuse this participant, by their addresses, until they accept it. Members alone are dialed, so
 * there are no more than those.
 */
export class Refusals {
  readonly #byAddress = new Map<string, LeaseholdError>();

  refusedBy(address: string, error: LeaseholdError): void {
    // A member that has too many clients may have room again soon.
    if (error.code !== "UNREACHABLE") this.#byAddress.set(address, error);
  }

  acceptedBy(address: string): void {
    this.#byAddress.delete(address);
  }

  /** Why the member at an address is not connected. */
  why(address: string): LeaseholdError {
    return this.#byAddress.get(address) ?? new LeaseholdError("UNREACHABLE", `no connection to ${address}`);
  }

  /** Of so many members, when those that are left are no majority. */
  ofMajority(members: number): LeaseholdError | undefined {
    const [first] = this.#byAddress.values();
    const { size } = this.#byAddress;
    if (first === undefined || members - size >= majorityOf(members)) return undefined;
    const text = `${size} of the ${members} members refuse this participant: ${first.message}`;
    return new LeaseholdError(first.code, text);
  }
}
