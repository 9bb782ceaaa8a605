import { clockRateErrorDefault, whyNoClockRateError, LeaseholdError } from "leasehold/common";
import type { RaftLimits, RaftOptions, Recovered } from "./api.js";
import { nobody } from "./types.js";
import type { MemberId } from "./types.js";

/** Term of the founders' first entry. */
const foundingTerm = 1;

export const defaultLimits: RaftLimits = {
  // Large enough that a follower that is behind makes few writes. Heartbeats have a separate connection.
  appendBytesMax: 1024 * 1024,
  // Enough to keep a link of 100 ms busy with a batch every half millisecond.
  inflightMessagesMax: 256,
  // Bounds the memory that a slow follower takes in its leader's socket buffers.
  inflightBytesMax: 16 * 1024 * 1024,
  // Room for about forty of the largest requests. Further ones are refused as overload.
  uncommittedBytesMax: 64 * 1024 * 1024,
  // Each pending read is a waiting client. Ten thousand share a round as easily as one.
  pendingReadsMax: 10_000,
  // Applying these takes a few milliseconds, which bounds the delay of heartbeats.
  committedEntriesMax: 4_096,
};

export interface RaftSettings {
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  readonly holdMs: number;
  readonly clockRateError: number;
  readonly limits: RaftLimits;
}

/** @throws LeaseholdError `INVALID_CONFIG` */
export function settingsOf(options: RaftOptions): RaftSettings {
  const { electionTicks = 10, heartbeatTicks = 1, holdMs = 0 } = options;
  const { clockRateError = clockRateErrorDefault } = options;
  const limits = { ...defaultLimits, ...options.limits };
  if (options.id === nobody) throw invalid("a member's id is not 0");
  for (const [name, value] of Object.entries({ electionTicks, heartbeatTicks, ...limits }))
    if (!Number.isSafeInteger(value) || value < 1)
      throw invalid(`${name} is ${value}, and must be 1 or more`);
  if (electionTicks <= heartbeatTicks)
    throw invalid(`electionTicks (${electionTicks}) must be more than heartbeatTicks (${heartbeatTicks})`);
  if (!(holdMs >= 0) || holdMs === Infinity) throw invalid(`holdMs is ${holdMs}, and must be 0 or more`);
  const wrongRate = whyNoClockRateError(clockRateError);
  if (wrongRate !== undefined) throw invalid(wrongRate);
  return { electionTicks, heartbeatTicks, holdMs, clockRateError, limits };
}

function invalid(why: string): LeaseholdError {
  return new LeaseholdError("INVALID_CONFIG", `raft: ${why}`);
}

/**
 * The initial disk of a server of a new core. All founding voters must begin with the same list.
 *
 * The log begins after a virtual snapshot at index 1: the list of voters and an empty state machine. A server
 * that joins later lacks that snapshot, so it is sent one and learns of those voters.
 */
export function founding(voters: readonly MemberId[]): Recovered {
  return {
    hardState: { term: foundingTerm, votedFor: nobody, commit: 1, promisedMs: 0 },
    snapshot: { index: 1, term: foundingTerm, membership: { voters: [...voters], learners: [] } },
    entries: [],
  };
}

/**
 * The longest promise not to vote that an earlier process of this server may have made to a leader, ms. If an
 * earlier version wrote the disk, which did not record promises, it is the present setting, provided there
 * has ever been a leader: the first leader of a core has term 2.
 */
export function promisedBefore({ hardState }: Recovered, holdMs: number): number {
  return hardState.promisedMs ?? (hardState.term > foundingTerm ? holdMs : 0);
}

/**
 * The initial disk of a server that joins an existing core. The server waits until the leader's change adds
 * it.
 */
export function joining(): Recovered {
  return {
    hardState: { term: 0, votedFor: nobody, commit: 0, promisedMs: 0 },
    snapshot: { index: 0, term: 0, membership: { voters: [], learners: [] } },
    entries: [],
  };
}
