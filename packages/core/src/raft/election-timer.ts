import type { BothClocks, Random } from "leasehold/common";
import type { Recovered } from "./api.js";
import { promisedBefore, type RaftSettings } from "./options.js";

/**
 * Decides when a server may stand for election, and when it may vote.
 *
 * Election timeouts are counted in ticks. Ticks may be late and then catch up, so less time may have passed
 * than they suggest. Therefore there is also a promise by the clock: for `holdMs` by its own steady clock
 * after hearing a leader, a server neither votes nor stands (thesis 4.2.3; for the leader's use of the
 * promise, 6.4.1 and `leader-lease.ts`). Exception: that leader started a transfer and hasn't cancelled it.
 *
 * Promises are on disk. A server that restarts with a shorter timeout still keeps the longer promise. As the
 * restart made it forget which transfers are over, it takes part in none meanwhile.
 */
export class ElectionTimer {
  readonly #settings: RaftSettings;
  readonly #random: Random;
  /** The last reading of the clocks. */
  now: BothClocks = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** Ticks since it heard a leader, granted its vote or stood for election. */
  #ticks = 0;
  #electionTicks: number;
  /** End of the previous process's promise; `Infinity` until the first clock reading. */
  #formerUntilMs: number;
  #promisedMs: number;
  /** End of this process's promise, and the term of the leader it was given to. */
  #heldUntilMs = -Infinity;
  #heldTerm = 0;
  /** The greatest `transfersOver` of that leader. */
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

  /** @param transfersOver 0 if the message has none */
  heardLeader(term: number, transfersOver: number): void {
    const { holdMs } = this.#settings;
    this.#ticks = 0;
    this.#heldUntilMs = this.now.monotonicMs + holdMs;
    this.#promisedMs = this.#isFormerlyHeld ? Math.max(this.#promisedMs, holdMs) : holdMs;
    if (term > this.#heldTerm) this.#transfersOver = 0;
    this.#heldTerm = term;
    this.#transfersOver = Math.max(this.#transfersOver, transfersOver);
  }

  /** The leader gave a sign of life. This makes no promise. */
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

  /** @returns whether to stand for election */
  tick(): boolean {
    this.#ticks += 1;
    return this.#ticks >= this.#electionTicks && !this.isHeld;
  }

  /** Whether a leader may still be alive, by ticks alone. The caller knows whether there was one. */
  get isRecent(): boolean {
    return this.#ticks < this.#settings.electionTicks;
  }

  /** Whether a promise to a leader still binds, made by this process or the previous one. */
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
   *   none. Earlier leaders no longer rely on promises, since that leader was elected.
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
   * The interval is half a timeout wide, which is many times the length of an election. A wider one would
   * only prolong the time without a leader (9.3).
   */
  #draw(): number {
    const { electionTicks } = this.#settings;
    return electionTicks + Math.floor((this.#random.next() * electionTicks) / 2);
  }
}
