import type { Reading } from "./clock.js";
import { reportedLeaseIsFinished } from "./expiry.js";
import { Refusal } from "./message.js";
import type { Message } from "./message.js";
import type { AttemptFailure } from "./proposer-ports.js";
import { excludesQuorum, isQuorum } from "./quorum.js";
import type { FleaseSettings } from "./settings.js";
import type { Operation } from "./instance.js";

/**
 * Tries of an acquisition that found the votes split among several before it believes that the resource is
 * held.
 */
const splitTriesMax = 6;

/**
 * Counting the answers to one phase of an operation. Acceptors are counted, never messages: a duplicated
 * reply is the same bit again (repair F15).
 */

export function clearVotes(operation: Operation): void {
  operation.acks = 0;
  operation.nacks = 0;
  operation.blockedUntil = 0;
  operation.blockedBy = "";
  operation.blockedVotes = 0;
  operation.ahead = 0;
}

export function countAck(operation: Operation, bit: number): void {
  operation.acks |= bit;
}

export function hasMajority(operation: Operation): boolean {
  return isQuorum(operation.instance.cell, operation.acks);
}

/** A majority has answered, whatever it said. */
export function majorityAnswered(operation: Operation): boolean {
  return isQuorum(operation.instance.cell, operation.acks | operation.nacks);
}

/** The members that have not refused are no majority. */
export function majorityIsImpossible(operation: Operation): boolean {
  return excludesQuorum(operation.instance.cell, operation.nacks);
}

/**
 * Every unfinished lease of another blocks, not only the one with the highest ballot (MUST, as there is ACQ).
 */
export function noteReportedLease(
  operation: Operation,
  reply: Message,
  owner: string,
  now: Reading,
  settings: FleaseSettings,
): void {
  if (!reportedLeaseIsFinished(reply, owner, now, settings)) noteBlocker(operation, reply);
}

/** Remembers the owner that blocks for the longest, and how many acceptors name it. */
function noteBlocker(operation: Operation, reply: Message): void {
  if (reply.leaseOwner === operation.blockedBy) operation.blockedVotes += 1;
  else if (reply.leaseExpiresWallMs > operation.blockedUntil) operation.blockedVotes = 1;
  if (reply.leaseExpiresWallMs <= operation.blockedUntil) return;
  operation.blockedUntil = reply.leaseExpiresWallMs;
  operation.blockedBy = reply.leaseOwner;
}

export function noteRefusal(operation: Operation, bit: number, reply: Message): void {
  operation.nacks |= bit;
  operation.lastRefusal = reply.refusal;
  if (reply.refusal === Refusal.barred) operation.instance.barred = true;
  if (reply.refusal === Refusal.full) operation.fullBy = reply.fullBy;
  if (reply.refusal !== Refusal.held) return;
  noteBlocker(operation, reply);
  operation.ahead = Math.max(operation.ahead, reply.ahead);
}

/** One owner blocks every majority, or votes have been split among several owners repeatedly. */
export function isHeldByAnother({ blockedUntil, blockedVotes, tries, instance }: Operation): boolean {
  const { members, majority } = instance.cell;
  return blockedUntil > 0 && (blockedVotes > members.length - majority || tries >= splitTriesMax);
}

/** The reason of an acquisition that was given up. */
export function whyFailed(operation: Operation): AttemptFailure {
  if (!operation.heardMajority) return "no-quorum";
  if (operation.lastRefusal === Refusal.outOfBounds) return "out-of-bounds";
  if (operation.lastRefusal === Refusal.busy) return "busy";
  return operation.lastRefusal === Refusal.full ? "full" : "contention";
}
