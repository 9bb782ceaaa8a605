import type { BothClocks, Random } from "leasehold/common";
import type { Recovered } from "./api.js";
import { promisedBefore, type RaftSettings } from "./options.js";

/**
 * Decides when a server may stand for election, and when it may vote.
 *
 * Candidacy goes by ticks. Ticks may come late and then catch up, so less time may lie between them than
 * they count. Hence the promise by the clock: for `holdMs` of its own steady clock after it has heard a
 * leader, a server neither votes nor stands (thesis 4.2.3, and 6.4.1 for the leader's use of that:
 * `leader-lease.ts`). Exception: that leader started a transfer and hasn't cancelled it.
 *
 * Promises are on disk. A server that restarts with a shorter timeout still keeps the longer promise; and
 * as it has forgotten which transfers it was told of, it takes part in none meanwhile.
 */
export class ElectionTimer {
  readonly #settings: RaftSettings;
  readonly #random: Random;
  /** The last reading of the clocks. */
  now: BothClocks = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** Ticks since it heard a leader, granted its vote or stood. */
  #ticks = 0;
  #electionTicks: number;
  /** The promise of the process before binds until then; `Infinity` until the first clock reading. */
  #formerUntilMs: number;
  #promisedMs: number;
  /** End of the promise of this process, and the term of the leader it was given to. */
  #heldUntilMs = -Infinity;
  #heldTerm = 0;
  /** Of that leader. */
  #transfersOver = 0;

  constructor(settings: RaftSettings, random: Random, recovered: Recovered) {
    this.#settings = settings;
    this.#random = random;
    this.#electionTicks = this.#draw();
    this.#promisedMs = promisedBefore(recovered, settings.holdMs);
    this.#formerUntilMs = this.#promisedMs > 0 ? Infinity : -Infinity;
  }

  /** The longest promise that may still bind: it must be on disk before a promise is given. */
  get promisedMs(): number {
    return this.#promisedMs;
  }

  setTime(now: BothClocks): void {
    this.now = now;
    if (this.#formerUntilMs === Infinity) this.#formerUntilMs = now.monotonicMs + this.#promisedMs;
  }

  /** @param transfersOver 0 if the message does not carry it */
  heardLeader(term: number, transfersOver: number): void {
    const { holdMs } = this.#settings;
    this.#ticks = 0;
    this.#heldUntilMs = this.now.monotonicMs + holdMs;
    this.#promisedMs = this.#isFormerlyHeld ? Math.max(this.#promisedMs, holdMs) : holdMs;
    if (term > this.#heldTerm) this.#transfersOver = 0;
    this.#heldTerm = term;
    this.#transfersOver = Math.max(this.#transfersOver, transfersOver);
  }

  /** A sign of life of the leader. It gives no promise. */
  hears(): void {
    this.#ticks = 0;
  }

  votes(): void {
    this.#ticks = 0;
  }

  restart(): void {
    this.#ticks = 0;
    this.#electionTicks = this.#draw();
  }

  /** @returns whether it is time to stand for election */
  tick(): boolean {
    this.#ticks += 1;
    return this.#ticks >= this.#electionTicks && !this.isHeld;
  }

  /** By ticks alone; the caller knows whether there was a leader. */
  get isRecent(): boolean {
    return this.#ticks < this.#settings.electionTicks;
  }

  /** Whether a promise to a leader still binds, of this process or the one before. */
  get isHeld(): boolean {
    return this.#isFormerlyHeld || this.now.monotonicMs < this.#heldUntilMs;
  }

  get #isFormerlyHeld(): boolean {
    return this.now.monotonicMs < this.#formerUntilMs;
  }

  /**
   * Whether a promise forbids a vote for a candidate of this term.
   *
   * @param transfer the transfer by which the leader of the preceding term asked the candidate to stand; 0:
   * none. Leaders before that one no longer rely on promises, since it was elected.
   */
  forbids(term: number, transfer: number): boolean {
    if (!this.isHeld) return false;
    if (transfer === 0 || this.#isFormerlyHeld) return true;
    const askedInTerm = term - 1;
    if (askedInTerm !== this.#heldTerm) return askedInTerm < this.#heldTerm;
    return transfer <= this.#transfersOver;
  }

  /**
   * "Election timeouts are chosen randomly from a fixed interval", so that split votes are rare (Raft 5.2).
   * The interval is half a timeout wide, many times the length of an election: a wider one only prolongs
   * the time without a leader (9.3).
   */
  #draw(): number {
    const { electionTicks } = this.#settings;
    return electionTicks + Math.floor((this.#random.next() * electionTicks) / 2);
  }
}
