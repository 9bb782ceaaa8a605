import { type BothClocks, elapsedMs, relied } from "leasehold/common";
import type { RaftSettings } from "./options.js";
import type { HeartbeatAnswer, MemberId } from "./types.js";

interface Sent {
  readonly round: number;
  readonly at: BothClocks;
}

/** What a voter has promised, as far as this server may rely on it. */
interface Held {
  readonly round: number;
  readonly from: BothClocks;
  readonly ms: number;
}

/** A round is noted if so much of what this server itself promises has passed since the last one. */
const notesPerHold = 16;

/** An answer to what is older comes too late to be of use, where servers promise about as much as this one. */
const notesMax = 2 * notesPerHold;

/**
 * How long a leader knows by its clock that nobody else leads (thesis 6.4.1). A voter that has heard the leader
 * holds to it for a time by its own clock (`election-timer.ts`); its answer to a heartbeat says for how long,
 * which is its own affair. It heard what it has answered after that was sent. So it votes for nobody else for
 * that long from the *sending* of the newest round that it has answered, less what the two clocks may differ
 * by. While a majority is held, no other leader is elected: each one needs the vote of one of them.
 *
 * Four things rest on this being so: that clocks run within ρ of real time; that a server which begins again
 * keeps to what it has promised before, whatever its timeout is now; that a leader does not count on its time
 * while a server that it has told to stand may be elected; and that it counts only on promises that were given
 * when voters knew that this transfer was over.
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

  /** A round of heartbeats leaves, after this reading of the clocks. */
  sent(round: number, at: BothClocks): void {
    if (this.#isSuspended) return;
    const last = this.#sent.at(-1);
    // An answer to a later round then counts from the earlier one.
    if (last !== undefined && elapsedMs(last.at, at) < this.#holdMs / notesPerHold) return;
    this.#sent.push({ round, at });
    if (this.#sent.length > notesMax) this.#sent.shift();
  }

  answered({ from: voter, round, holdMs }: HeartbeatAnswer): void {
    const sent = this.#sent.findLast((note) => note.round <= round);
    if (sent === undefined || (this.#held.get(voter)?.round ?? 0) > round) return;
    this.#held.set(voter, { round, from: sent.at, ms: relied(holdMs, this.#clockRateError) });
  }

  /** Another server is told to stand: nothing that was promised counts any more. */
  suspend(): void {
    this.#isSuspended = true;
    this.#sent = [];
    this.#held = new Map();
  }

  /** Rounds that leave from now on say that the transfer is over; so what answers them promise counts. */
  resume(): void {
    this.#isSuspended = false;
  }

  forget(member: MemberId): void {
    this.#held.delete(member);
  }

  /** Whether this voter votes for nobody else yet. */
  holds(voter: MemberId, now: BothClocks): boolean {
    const held = this.#held.get(voter);
    // By the clock that went further: the steady one stands still in a machine that is suspended.
    return held !== undefined && elapsedMs(held.from, now) < held.ms;
  }
}
