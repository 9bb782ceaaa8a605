import type { BothClocks } from "../../common/both-clocks.js";
import type { Random } from "../../common/ports.js";
import type { RaftSettings } from "./options.js";

/**
 * When a server may stand, and when it may vote.
 *
 * It stands by ticks. Ticks may come late and the next ones in time, so that there is less between them than
 * they say. So there is a promise by the clock beside them: for `holdMs` by its own steady clock after it has
 * heard a leader, a server neither votes nor stands, but for a leader that has asked for it (thesis 4.2.3,
 * and 6.4.1 for what the leader makes of that: `leader-lease.ts`).
 */
export class ElectionTimer {
  readonly #settings: RaftSettings;
  readonly #random: Random;
  /** What the clocks said last. */
  now: BothClocks = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** Since it heard a leader, gave its vote or stood. */
  #ticks = 0;
  #electionTicks: number;
  #heldUntilMs: number;

  /** @param mayHavePromised it has heard a leader in an earlier life, nobody knows when */
  constructor(settings: RaftSettings, random: Random, mayHavePromised: boolean) {
    this.#settings = settings;
    this.#random = random;
    this.#electionTicks = this.#draw();
    this.#heldUntilMs = mayHavePromised && settings.holdMs > 0 ? Infinity : -Infinity;
  }

  tellTime(now: BothClocks): void {
    this.now = now;
    if (this.#heldUntilMs === Infinity) this.#hold();
  }

  heardLeader(): void {
    this.#ticks = 0;
    this.#hold();
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
    return this.now.monotonicMs < this.#heldUntilMs;
  }

  #hold(): void {
    this.#heldUntilMs = this.now.monotonicMs + this.#settings.holdMs;
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
