import type { BothClocks, Random } from "leasehold/common";
import type { Recovered } from "./api.js";
import { promisedBefore, type RaftSettings } from "./options.js";

/**
 * When a server may stand, and when it may vote.
 *
 * It stands by ticks. Ticks may come late and the next ones in time, so that there is less between them than
 * they say. So there is a promise by the clock beside them: for `holdMs` by its own steady clock after it has
 * heard a leader, a server neither votes nor stands (thesis 4.2.3, and 6.4.1 for what the leader makes of
 * that: `leader-lease.ts`). It does if that leader has asked for it, by a transfer of which it has not said
 * that it is over.
 *
 * What an earlier life has promised is on disk. So a server that begins again with a shorter timeout still
 * waits as long; and as it does not know what it was told of transfers, it takes part in none meanwhile.
 */
export class ElectionTimer {
  readonly #settings: RaftSettings;
  readonly #random: Random;
  /** What the clocks said last. */
  now: BothClocks = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** Since it heard a leader, gave its vote or stood. */
  #ticks = 0;
  #electionTicks: number;
  /** What an earlier life has promised binds until then; `Infinity` until the time is told. */
  #formerUntilMs: number;
  #promisedMs: number;
  /** What this one has promised, and the term of the leader that it has promised it. */
  #heldUntilMs = -Infinity;
  #heldTerm = 0;
  /** Of that leader's. */
  #transfersOver = 0;

  constructor(settings: RaftSettings, random: Random, recovered: Recovered) {
    this.#settings = settings;
    this.#random = random;
    this.#electionTicks = this.#draw();
    this.#promisedMs = promisedBefore(recovered, settings.holdMs);
    this.#formerUntilMs = this.#promisedMs > 0 ? Infinity : -Infinity;
  }

  /** The most that a promise that may still bind was for: to be on disk before one is given. */
  get promisedMs(): number {
    return this.#promisedMs;
  }

  tellTime(now: BothClocks): void {
    this.now = now;
    if (this.#formerUntilMs === Infinity) this.#formerUntilMs = now.monotonicMs + this.#promisedMs;
  }

  /** @param transfersOver 0 if its message does not say it */
  heardLeader(term: number, transfersOver: number): void {
    const { holdMs } = this.#settings;
    this.#ticks = 0;
    this.#heldUntilMs = this.now.monotonicMs + holdMs;
    this.#promisedMs = this.#isFormerlyHeld ? Math.max(this.#promisedMs, holdMs) : holdMs;
    if (term > this.#heldTerm) this.#transfersOver = 0;
    this.#heldTerm = term;
    this.#transfersOver = Math.max(this.#transfersOver, transfersOver);
  }

  /** The leader is there. It is promised nothing for that. */
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

  /** @returns whether it is time to stand */
  tick(): boolean {
    this.#ticks += 1;
    return this.#ticks >= this.#electionTicks && !this.isHeld;
  }

  /** By ticks; whether there was a leader to hear is known elsewhere. */
  get isRecent(): boolean {
    return this.#ticks < this.#settings.electionTicks;
  }

  /** What it has promised a leader, in this life or the one before, still binds it. */
  get isHeld(): boolean {
    return this.#isFormerlyHeld || this.now.monotonicMs < this.#heldUntilMs;
  }

  get #isFormerlyHeld(): boolean {
    return this.now.monotonicMs < this.#formerUntilMs;
  }

  /**
   * Whether a promise forbids a vote for a candidate of this term.
   *
   * @param transfer by which the leader of the term before has asked it to stand; 0: nobody has. A leader
   * earlier than that one counts on nothing any more, as that one was elected.
   */
  forbids(term: number, transfer: number): boolean {
    if (!this.isHeld) return false;
    if (transfer === 0 || this.#isFormerlyHeld) return true;
    const askedInTerm = term - 1;
    if (askedInTerm !== this.#heldTerm) return askedInTerm < this.#heldTerm;
    return transfer <= this.#transfersOver;
  }

  /**
   * "Election timeouts are chosen randomly from a fixed interval", so that votes are seldom split (Raft 5.2).
   * The interval is half a timeout wide, many times what an election takes: a wider one only adds to the time
   * without a leader (9.3).
   */
  #draw(): number {
    const { electionTicks } = this.#settings;
    return electionTicks + Math.floor((this.#random.next() * electionTicks) / 2);
  }
}
