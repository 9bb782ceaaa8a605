import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { RefusalReason } from "../../raft/api.js";
import type { MemberId } from "../../raft/types.js";
import type { CoreFailure } from "../../state/errors.js";
import { readCommand } from "./read-command.js";

interface Base {
  readonly from: MemberId;
  readonly to: MemberId;
  /** Chosen by the asking server and repeated in the answer. */
  readonly number: number;
}

/**
 * Requests from a server to its leader on behalf of clients, and the leader's answers. A leader sends itself
 * the same messages. All may be lost with a connection; otherwise they arrive in the order they were sent.
 * Proposals are sent again on the next connection (`forwarding.ts`), and the leader appends each once
 * (`forwarded.ts`).
 */
export type LeaderMessage = Propose | ProposeChange | Ask | LeaderAnswer | LeaderRefusal;

interface Proposal extends Base {
  /** The only term in which a leader may accept it: see `ClientRequests`. */
  readonly term: number;
  /**
   * Numbers count within one process (life) of a server. 0: an earlier version, or a server that never
   * repeats.
   */
  readonly life: number;
  /** All smaller numbers of this life are settled, and will never be sent again. */
  readonly settled: number;
  /** The proposal was sent before on a lost connection, and may have arrived. */
  readonly again: boolean;
  readonly command: Uint8Array;
}

/** A command for the log. There is no answer: the sender sees the command applied. */
export interface Propose extends Proposal {
  readonly kind: "propose";
}

/** A change of the membership or of a member's description. The leader judges it before it is proposed. */
export interface ProposeChange extends Proposal {
  readonly kind: "propose-change";
}

/** A request that needs a confirmed leader (ReadIndex, thesis 6.4). */
export interface Ask extends Base {
  readonly kind: "ask";
  /** A read index; a refresh of a lease; or a lease's remaining time. */
  readonly about: "read" | "refresh" | "remaining";
  /** 0 for a read. */
  readonly lease: bigint;
  /** How long the asking server will wait, ms. After that there is no answer, and nothing is refreshed. */
  readonly leftMs: number;
}

export interface LeaderAnswer extends Base {
  readonly kind: "leader-answer";
  /** The asking server answers its client once it has applied this. */
  readonly index: number;
  /** The leader's revision before any refresh. */
  readonly revision: number;
  /**
   * Refreshed: the lease's full time to live, or 0 if it has ended. Remaining: the time left, or -1 if it has
   * ended.
   */
  readonly ttlSeconds: number;
}

/** Nothing was proposed or refreshed, and nothing will be. */
export interface LeaderRefusal extends Base {
  readonly kind: "leader-refusal";
  /** The proposal's term; for other requests the leader's. */
  readonly term: number;
  readonly failure: (typeof refusalFailures)[number];
}

/** Reasons for refusals. Servers send a position in this list: append only. */
export const refusalFailures = [
  "leaderChanged",
  "tooManyRequests",
  "memberNotFound",
  "peerUrlExists",
  "notEnoughStarted",
  "unhealthy",
  "tooManyLearners",
  "tooManyMembers",
  "notLearner",
  "learnerNotReady",
] as const satisfies readonly CoreFailure[];

/** Translates Raft's refusal for the asking server: retry later, or ask the next leader. */
export function failureOf(reason: RefusalReason): "leaderChanged" | "tooManyRequests" {
  return reason === "overloaded" ? "tooManyRequests" : "leaderChanged";
}

/** Membership changes: the leader judges them before they are proposed. */
const changes: ReadonlySet<Command["body"]["case"]> = new Set(["memberChange", "memberUpdate"] as const);

/**
 * Whether a command from another server is in that server's name, and of the kind that its message claims.
 * The command is decoded completely: an undecodable one in the log would stop every server forever. A command
 * without a proposer acts for the core with all rights: a follower may send one only to describe itself.
 */
export function isProposedBySender({ command, from, kind }: Propose | ProposeChange): boolean {
  try {
    const { body, proposer } = readCommand(0, command);
    if (changes.has(body.case) !== (kind === "propose-change")) return false;
    if (proposer === from) return body.case !== undefined;
    return proposer === 0n && body.case === "memberAttributes" && body.value.member === from;
  } catch {
    return false;
  }
}
