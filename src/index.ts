import type { Leases } from "./lease/types.js";
import type { Member, MemberOptions, MemberReport, OpenOptions } from "./host/types.js";

export type * from "./lease/types.js";
export type { Logger, Member, MemberOptions, MemberReport, MemberStatus, OpenOptions, PeerStatus } from "./host/types.js";
export { errorCodes, LeaseholdError, LeaseLostError } from "./lease/errors.js";
export type { ErrorCode, LossReason } from "./lease/errors.js";

/** Opens the leases behind one or more addresses: `flease://host:port` (one for each known member) or `memory:name`. */
export function open(...args: [...urls: string[], options: OpenOptions] | string[]): Promise<Leases> {
  throw new Error(`to be written ${args.length}`);
}

/** Makes this process a member of a Flease cluster. */
export function startMember(options: MemberOptions): Promise<Member> {
  throw new Error(`to be written ${options.id}`);
}

/** Asks every member how it is. */
export function clusterStatus(...args: [...urls: string[], options: OpenOptions] | string[]): Promise<MemberReport[]> {
  throw new Error(`to be written ${args.length}`);
}
