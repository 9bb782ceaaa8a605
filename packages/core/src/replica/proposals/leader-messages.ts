import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { RefusalReason } from "../../raft/api.js";
import type { MemberId } from "../../raft/types.js";
import type { CoreFailure } from "../../state/errors.js";
import { readCommand } from "./read-command.js";

interface Base {
  readonly from: MemberId;
  readonly to: MemberId;
  /** Chosen by the server that asks; answers carry it. */
  readonly number: number;
}

/**
 * What a server asks of its leader for its clients, and what the leader answers. A leader asks itself in
 * the same words. All of it may be lost with a connection; from one server to another it arrives in the order
 * of sending. Proposals are sent again on the next connection (`forwarding.ts`), and the leader appends each
 * once (`forwarded.ts`).
 */
export type LeaderMessage = Propose | ProposeChange | Ask | LeaderAnswer | LeaderRefusal;

interface Proposal extends Base {
  /** It is for the leader of this term, and no later one takes it: see `ClientRequests`. */
  readonly term: number;
  /** Numbers count within one life of a server. 0: an earlier version, or one that sends it once. */
  readonly life: number;
  /** All of this life with smaller numbers are over: none of them is ever sent again. */
  readonly settled: number;
  /** It was sent before on a connection that was cut, and may have arrived. */
  readonly again: boolean;
  readonly command: Uint8Array;
}

/** A command for the log. It is not answered: the server that sent it sees it applied. */
export interface Propose extends Proposal {
  readonly kind: "propose";
}

/** A change of the membership, or of what is known of a member: the leader judges it first. */
export interface ProposeChange extends Proposal {
  readonly kind: "propose-change";
}

/** What needs a leader that is sure to be one (ReadIndex, thesis 6.4). */
export interface Ask extends Base {
  readonly kind: "ask";
  /** The right to read; to refresh a lease; or how long a lease still has. */
  readonly about: "read" | "refresh" | "remaining";
  /** 0 for a read. */
  readonly lease: bigint;
  /** How long the server that asks will wait, ms: later it is not answered, and nothing is refreshed. */
  readonly leftMs: number;
}

export interface LeaderAnswer extends Base {
  readonly kind: "leader-answer";
  /** The asker answers its client once it has applied this. */
  readonly index: number;
  /** The leader's, from before it refreshed anything. */
  readonly revision: number;
  /**
   * Refreshed: the lease's whole time to live, or 0 if it has ended. Remaining: what is left, or -1 if it has
   * ended.
   */
  readonly ttlSeconds: number;
}

/** Nothing was proposed or refreshed, and nothing of it will be. */
export interface LeaderRefusal extends Base {
  readonly kind: "leader-refusal";
  /** Of what was proposed; for a question the leader's. */
  readonly term: number;
  readonly failure: (typeof refusalFailures)[number];
}

/** Why a leader refuses. Servers send the place in this list: it only ever grows at its end. */
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

/** What Raft's refusal means to the server that asked: come back later, or ask the next leader. */
export function failureOf(reason: RefusalReason): "leaderChanged" | "tooManyRequests" {
  return reason === "overloaded" ? "tooManyRequests" : "leaderChanged";
}

/** Changes of the membership: the leader judges them first. */
const changes: ReadonlySet<Command["body"]["case"]> = new Set(["memberChange", "memberUpdate"] as const);

/**
 * Whether a command from another server is in that server's name, and what its message says it is. It is decoded as
 * a whole: one that cannot be would end each server that comes to it in the log, for ever. A command without a
 * proposer acts for the core, past all rights: a follower sends one only to describe itself.
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
