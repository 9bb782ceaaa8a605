import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { RefusalReason } from "../../raft/api.js";
import type { MemberId } from "../../raft/types.js";
import type { CoreFailure } from "../../state/errors.js";
import { readCommand } from "./read-command.js";

interface Base {
  readonly from: MemberId;
  readonly to: MemberId;
  /** Chosen by the asking server; answers repeat it. */
  readonly number: number;
}

/**
 * Requests of a server to its leader on behalf of clients, and the leader's answers. A leader uses the same
 * messages to itself. All may be lost with a connection; between two servers they arrive in the order of
 * sending. Proposals are sent again on the next connection (`forwarding.ts`), and the leader appends each
 * once (`forwarded.ts`).
 */
export type LeaderMessage = Propose | ProposeChange | Ask | LeaderAnswer | LeaderRefusal;

interface Proposal extends Base {
  /** For the leader of this term only: see `ClientRequests`. */
  readonly term: number;
  /** Numbers count within one life of a server. 0: an earlier version, or one that never repeats. */
  readonly life: number;
  /** All smaller numbers of this life are settled: none of them is ever sent again. */
  readonly settled: number;
  /** The request was sent before on a lost connection, and may have arrived. */
  readonly again: boolean;
  readonly command: Uint8Array;
}

/** A command for the log. It is not answered: its sender sees it applied. */
export interface Propose extends Proposal {
  readonly kind: "propose";
}

/** A change of the membership, or of a member's description: the leader judges it first. */
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
  /** How long the asking server will wait, ms: later it is not answered, and nothing is refreshed. */
  readonly leftMs: number;
}

export interface LeaderAnswer extends Base {
  readonly kind: "leader-answer";
  /** The asking server answers its client once it has applied this. */
  readonly index: number;
  /** The leader's revision before any refresh. */
  readonly revision: number;
  /**
   * Refreshed: the lease's whole time to live, or 0 if it has ended. Remaining: the time left, or -1 if it
   * has ended.
   */
  readonly ttlSeconds: number;
}

/** Nothing was proposed or refreshed, and nothing of it will be. */
export interface LeaderRefusal extends Base {
  readonly kind: "leader-refusal";
  /** The proposal's term; for other requests the leader's. */
  readonly term: number;
  readonly failure: (typeof refusalFailures)[number];
}

/** Reasons of refusals. Servers send the index in this list: it only ever grows at its end. */
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

/** The meaning of Raft's refusal for the asking server: retry later, or ask the next leader. */
export function failureOf(reason: RefusalReason): "leaderChanged" | "tooManyRequests" {
  return reason === "overloaded" ? "tooManyRequests" : "leaderChanged";
}

/** Membership changes: the leader judges them first. */
const changes: ReadonlySet<Command["body"]["case"]> = new Set(["memberChange", "memberUpdate"] as const);

/**
 * Whether a command from another server is in that server's name, and of the kind its message claims. It is
 * decoded as a whole: an undecodable command in the log would stop every server, for ever. A command
 * without a proposer acts for the core, past all rights: a follower sends one only to describe itself.
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
