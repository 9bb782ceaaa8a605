import { type BothClocks, elapsedMs, relied } from "leasehold/common";
import type { RaftSettings } from "./options.js";
import type { HeartbeatAnswer, MemberId } from "./types.js";

interface Sent {
  readonly round: number;
  readonly at: BothClocks;
}

/** A voter's promise, as far as the leader relies on it. */
interface Held {
  readonly round: number;
  readonly from: BothClocks;
  readonly ms: number;
}

/** During one of its own promises, a leader records at most this many rounds. */
const notesPerHold = 16;

/** Answers to older rounds are too late to be useful, if all servers promise about as long as this one. */
const notesMax = 2 * notesPerHold;

/**
 * How long a leader knows by its clock that there is no other leader (thesis 6.4.1). A voter that hears the
 * leader stays loyal for a time that it chooses itself, by its own clock (`election-timer.ts`); its answer to
 * a heartbeat carries that time. The voter heard the heartbeat after it was sent. So it votes for no other
 * candidate for that time from the *sending* of the newest round it has answered, less the possible
 * difference of the two clocks. While a majority is bound, no other leader can be elected, as it would need
 * one of their votes.
 *
 * This rests on four things: clocks run within ρ of real time; a restarted server keeps earlier promises,
 * whatever its timeout is now; a leader does not rely on promises while a server that it asked to stand may
 * be elected; and afterwards it relies only on promises made by voters that knew the transfer was over.
 */
export class LeaderLease {
  readonly #holdMs: number;
  readonly #clockRateError: number;
  /** Oldest first. */
  #sent: Sent[] = [];
  #held = new Map<MemberId, Held>();
  #isSuspended = false;

  constructor({ holdMs, clockRateError }: RaftSettings) {
    this.#holdMs = holdMs;
    this.#clockRateError = clockRateError;
  }

  /** A round of heartbeats leaves; `at` was read before that. */
  sent(round: number, at: BothClocks): void {
    if (this.#isSuspended) return;
    const last = this.#sent.at(-1);
    // An answer to this round then counts from the earlier one.
    if (last !== undefined && elapsedMs(last.at, at) < this.#holdMs / notesPerHold) return;
    this.#sent.push({ round, at });
    if (this.#sent.length > notesMax) this.#sent.shift();
  }

  answered({ from: voter, round, holdMs }: HeartbeatAnswer): void {
    const sent = this.#sent.findLast((note) => note.round <= round);
    if (sent === undefined || (this.#held.get(voter)?.round ?? 0) > round) return;
    this.#held.set(voter, { round, from: sent.at, ms: relied(holdMs, this.#clockRateError) });
  }

  /** Another server was asked to stand: promises no longer count. */
  suspend(): void {
    this.#isSuspended = true;
    this.#sent = [];
    this.#held = new Map();
  }

  /** Rounds from now on announce that the transfer is over, so the promises in their answers count. */
  resume(): void {
    this.#isSuspended = false;
  }

  forget(member: MemberId): void {
    this.#held.delete(member);
  }

  /** Whether this voter still votes for nobody else. */
  holds(voter: MemberId, now: BothClocks): boolean {
    const held = this.#held.get(voter);
    // Uses the clock that advanced further: the steady one stops while a machine is suspended.
    return held !== undefined && elapsedMs(held.from, now) < held.ms;
  }
}
