import type { Reading } from "./clock.js";
import { reportedLeaseIsFinished } from "./expiry.js";
import { Refusal } from "./message.js";
import type { Message } from "./message.js";
import type { AttemptFailure } from "./proposer-ports.js";
import { sizeOf } from "./quorum.js";
import type { FleaseSettings } from "./settings.js";
import type { Instance } from "./instance.js";

/**
 * Counting the answers to one phase of an operation. Acceptors are counted, never messages: a duplicated
 * reply is the same bit again (repair F15).
 */

export function clearVotes(instance: Instance): void {
  instance.acks = 0;
  instance.nacks = 0;
  instance.blockedUntil = 0;
  instance.blockedBy = "";
  instance.blockedVotes = 0;
  instance.ahead = 0;
}

export function countAck(instance: Instance, bit: number): void {
  instance.acks |= bit;
}

export function hasMajority(instance: Instance): boolean {
  return sizeOf(instance.acks) >= instance.cell.majority;
}

/** So many have refused that those left are no majority. */
export function majorityIsImpossible(instance: Instance): boolean {
  return sizeOf(instance.nacks) > instance.cell.members.length - instance.cell.majority;
}

/**
 * Every unfinished lease of another blocks, not only the one with the highest ballot (MUST, as there is ACQ).
 */
export function noteReportedLease(
  instance: Instance,
  reply: Message,
  owner: string,
  now: Reading,
  settings: FleaseSettings,
): void {
  if (!reportedLeaseIsFinished(reply, owner, now, settings)) noteBlocker(instance, reply);
}

/** Remembers who stands in the way the longest, and how many acceptors name that one. */
export function noteBlocker(instance: Instance, reply: Message): void {
  if (reply.leaseOwner === instance.blockedBy) instance.blockedVotes += 1;
  else if (reply.leaseExpiresWallMs > instance.blockedUntil) instance.blockedVotes = 1;
  if (reply.leaseExpiresWallMs <= instance.blockedUntil) return;
  instance.blockedUntil = reply.leaseExpiresWallMs;
  instance.blockedBy = reply.leaseOwner;
}

/**
 * One and the same owner stands in the way of every majority, so the votes are not merely split among
 * several.
 */
export function isBlockedByMajority(instance: Instance): boolean {
  return instance.blockedVotes > instance.cell.members.length - instance.cell.majority;
}

/** What an acquisition that was given up has to say for itself. */
export function whyFailed(instance: Instance): AttemptFailure {
  if (!instance.heardMajority) return "no-quorum";
  if (instance.lastRefusal === Refusal.outOfBounds) return "out-of-bounds";
  if (instance.lastRefusal === Refusal.busy) return "busy";
  return instance.lastRefusal === Refusal.full ? "full" : "contention";
}
