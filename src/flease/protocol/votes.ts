import type { Reading } from "./clock.js";
import { reportedLeaseIsFinished } from "./expiry.js";
import { Refusal } from "./message.js";
import type { Message } from "./message.js";
import type { AttemptFailure } from "./proposer-ports.js";
import { sizeOf } from "./quorum.js";
import type { FleaseSettings } from "./settings.js";
import type { Slot } from "./slot.js";

/**
 * Counting the answers to one phase of an operation. Acceptors are counted, never messages: a duplicated
 * reply is the same bit again (repair F15).
 */

export function clearVotes(slot: Slot): void {
  slot.acks = 0;
  slot.nacks = 0;
  slot.blockedUntil = 0;
  slot.blockedBy = "";
  slot.blockedVotes = 0;
  slot.ahead = 0;
}

export function countAck(slot: Slot, bit: number): void {
  slot.acks |= bit;
}

export function hasMajority(slot: Slot): boolean {
  return sizeOf(slot.acks) >= slot.cell.majority;
}

/** So many have refused that those left are no majority. */
export function majorityIsImpossible(slot: Slot): boolean {
  return sizeOf(slot.nacks) > slot.cell.members.length - slot.cell.majority;
}

/**
 * Every unfinished lease of another blocks, not only the one with the highest ballot (MUST, as there is ACQ).
 */
export function noteReportedLease(
  slot: Slot,
  reply: Message,
  owner: string,
  now: Reading,
  settings: FleaseSettings,
): void {
  if (!reportedLeaseIsFinished(reply, owner, now, settings)) noteBlocker(slot, reply);
}

/** Remembers who stands in the way the longest, and how many acceptors name that one. */
export function noteBlocker(slot: Slot, reply: Message): void {
  if (reply.leaseOwner === slot.blockedBy) slot.blockedVotes += 1;
  else if (reply.leaseExpiresWallMs > slot.blockedUntil) slot.blockedVotes = 1;
  if (reply.leaseExpiresWallMs <= slot.blockedUntil) return;
  slot.blockedUntil = reply.leaseExpiresWallMs;
  slot.blockedBy = reply.leaseOwner;
}

/**
 * One and the same owner stands in the way of every majority, so the votes are not merely split among
 * several.
 */
export function isBlockedByMajority(slot: Slot): boolean {
  return slot.blockedVotes > slot.cell.members.length - slot.cell.majority;
}

/** What an acquisition that was given up has to say for itself. */
export function whyFailed(slot: Slot): AttemptFailure {
  if (!slot.heardMajority) return "no-quorum";
  if (slot.lastRefusal === Refusal.outOfBounds) return "out-of-bounds";
  if (slot.lastRefusal === Refusal.busy) return "busy";
  return slot.lastRefusal === Refusal.full ? "full" : "contention";
}
