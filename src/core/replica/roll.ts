import type { MemberId } from "../raft/types.js";
import type { CoreMember } from "../state/members.js";

/** What a server says of itself; it is written into the log when that is not there yet. */
export interface SelfDescription {
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly disk: bigint;
}

/** The servers with whom this one talks, and those who were removed. */
export interface Roll {
  readonly members: readonly CoreMember[];
  readonly removed: ReadonlySet<MemberId>;
}
