import type { Reading } from "./clock.js";
import { reportedLeaseIsFinished } from "./expiry.js";
import { Refusal } from "./message.js";
import type { Message } from "./message.js";
import type { AttemptFailure } from "./proposer-ports.js";
import { excludesQuorum, isQuorum } from "./quorum.js";
import type { FleaseSettings } from "./settings.js";
import type { Operation } from "./instance.js";

/**
 * Attempts of an acquisition that see the votes split among several owners before it considers the resource
 * held.
 */
const splitTriesMax = 6;

/**
 * Counts the answers to one phase of an operation. It counts acceptors, never messages: a duplicated reply
 * sets the same bit again (repair F15).
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

/** A majority has answered, positively or not. */
export function majorityAnswered(operation: Operation): boolean {
  return isQuorum(operation.instance.cell, operation.acks | operation.nacks);
}

/** The members that have not refused are no majority. */
export function majorityIsImpossible(operation: Operation): boolean {
  return excludesQuorum(operation.instance.cell, operation.nacks);
}

/**
 * Every unfinished lease of another owner blocks, not only the one with the highest ballot (MUST, because of
 * ACQ).
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

/** Remembers the owner whose lease blocks longest, and how many acceptors name it. */
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

/** One owner blocks every majority, or votes were repeatedly split among several owners. */
export function isHeldByAnother({ blockedUntil, blockedVotes, tries, instance }: Operation): boolean {
  const { members, majority } = instance.cell;
  return blockedUntil > 0 && (blockedVotes > members.length - majority || tries >= splitTriesMax);
}

/** The reason why an acquisition was given up. */
export function whyFailed(operation: Operation): AttemptFailure {
  if (!operation.heardMajority) return "no-quorum";
  if (operation.lastRefusal === Refusal.outOfBounds) return "out-of-bounds";
  if (operation.lastRefusal === Refusal.busy) return "busy";
  return operation.lastRefusal === Refusal.full ? "full" : "contention";
}
