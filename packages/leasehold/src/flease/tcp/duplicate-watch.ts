import { majorityOf } from "../../common/majority.js";

/**
 * Guards against a duplicate member: two processes with one member's id (`docs/operations.md`; the status
 * calls such a process a `twin`). Quorums count ids, so a majority with one process and a majority with the
 * other need not overlap, and there would be two holders. Pure: callers pass the time of the steady clock.
 *
 * A process votes only while enough other members confirm it. A member confirms one process per id at a
 * time: it admits no second process before the first must have noticed that it is no longer confirmed.
 * Members announce their connections to each other, so two members that confirm different processes find
 * out as soon as they are connected.
 */

/** How long our status reports another process with our id. */
export const DUPLICATE_NOTICE_MS = 60_000;

/** Another member, as seen on our connection. */
interface OtherMember {
  readonly incarnation: string;
  /** Time (our clock) up to which the member was certainly connected to us. */
  confirmedMs: number;
  /**
   * Whether its confirmation counts: it has confirmed no other process with our id since our recovery wait
   * began, or since our acceptor last voted.
   */
  counts: boolean;
  /** It reported this very process as the last one with our id that it was connected to. */
  knewUs: boolean;
  /** The incarnations it is connected to, by id; `undefined` until it announces them. */
  connected: ReadonlyMap<string, string> | undefined;
}

export interface DuplicateWatchOptions {
  /** Number of members. */
  readonly members: number;
  /** Validity of a confirmation: shorter than any member keeps a silent connection. */
  readonly lapseMs: number;
}

export class DuplicateWatch {
  readonly #lapseMs: number;
  /** Number of other members that form a majority with us. */
  #confirmationsNeeded = 0;
  /**
   * The smallest number of other members such that any set of that size overlaps every set that could confirm
   * another process.
   */
  #blocking = 0;
  /** By id. */
  readonly #others = new Map<string, OtherMember>();
  /** The last connected incarnation, by id; also of members that are now disconnected. */
  readonly #last = new Map<string, string>();
  /** Refusals by other members, with reasons. A refusal stands until that member accepts us. */
  readonly #refusals = new Map<string, string>();
  #seenDuplicate: { readonly text: string; readonly untilMs: number } | undefined;
  /** True after the recovery wait that our acceptor began with a majority connected. */
  #begun = false;
  /** When the wait for a connected majority began. */
  #waitingSinceMs = Infinity;
  /** Our vote counts at least up to this time. */
  #votesUntilMs = -Infinity;

  constructor(options: DuplicateWatchOptions) {
    this.#lapseMs = options.lapseMs;
    this.members = options.members;
  }

  /**
   * Number of members with a vote; in a joint view, the total of both views. A majority of those overlaps a
   * majority of either.
   */
  set members(members: number) {
    const majority = majorityOf(members);
    if (this.#confirmationsNeeded < majority - 1) this.#votesUntilMs = -Infinity;
    this.#confirmationsNeeded = majority - 1;
    this.#blocking = members - majority + 1;
  }

  /**
   * Records a connected member. Returns the incarnation of its id that was connected before, `""` if none.
   */
  linked(id: string, incarnation: string): string {
    const before = this.#last.get(id) ?? "";
    this.#last.set(id, incarnation);
    this.#others.set(id, {
      incarnation,
      confirmedMs: -Infinity,
      counts: false,
      knewUs: false,
      connected: undefined,
    });
    this.#refusals.delete(id);
    return before;
  }

  unlinked(id: string): void {
    this.#others.delete(id);
    this.#votesUntilMs = -Infinity;
  }

  /** Records that the member has received what we sent at this time of our clock. */
  confirmed(id: string, sentMs: number): void {
    const other = this.#others.get(id);
    if (other !== undefined && sentMs > other.confirmedMs) other.confirmedMs = sentMs;
  }

  /**
   * Handles a member's announcement of its connections, and whether this very process was the last one with
   * our id that it was connected to. Returns the ids for which it is connected to a different process than we
   * are.
   */
  connectionsOf(id: string, connected: ReadonlyMap<string, string>, knewUs: boolean): string[] {
    const other = this.#others.get(id);
    if (other === undefined) return [];
    if (other.connected === undefined) other.knewUs = knewUs;
    other.connected = connected;
    return [...this.#others]
      .filter(([each, { incarnation }]) => differs(connected, each, incarnation))
      .map(([each]) => each);
  }

  /** Returns why a process must not be admitted as this member: another one is connected elsewhere. */
  objection(id: string, incarnation: string): string | undefined {
    for (const [witness, { connected }] of this.#others) {
      if (witness === id || connected === undefined || !differs(connected, id, incarnation)) continue;
      return `another process is the member ${JSON.stringify(id)} already, connected with ${JSON.stringify(witness)}; two processes must not be one member`;
    }
    return undefined;
  }

  /** Whether this member's confirmation counts: it has confirmed no other process with our id. */
  counts(id: string): boolean {
    return this.#others.get(id)?.counts === true;
  }

  /** The members we are connected to, by id, without ourselves: the content of our announcements. */
  get connected(): Record<string, string> {
    return Object.fromEntries([...this.#others].map(([id, { incarnation }]) => [id, incarnation]));
  }

  /** Records a refusal: the member is connected to another process with our id, or knows a peer that is. */
  refusedBy(id: string, text: string): void {
    this.#refusals.set(id, text);
    this.#begun = false;
    this.#votesUntilMs = -Infinity;
  }

  /** Records a member's report that it refused another process with our id. */
  duplicateSeen(text: string, nowMs: number): void {
    this.#seenDuplicate = { text, untilMs: nowMs + DUPLICATE_NOTICE_MS };
  }

  /** Starts over as another incarnation; all connections are made anew. */
  restarted(): void {
    this.#others.clear();
    this.#begun = false;
    this.#votesUntilMs = -Infinity;
  }

  /** Whether our acceptor may answer at this moment. */
  votes(nowMs: number): boolean {
    if (nowMs > this.#votesUntilMs) this.#votesUntilMs = this.#confirmedUntilMs();
    return nowMs <= this.#votesUntilMs;
  }

  #confirmedUntilMs(): number {
    if (this.isDuplicate || !this.#begun) return -Infinity;
    if (this.#confirmationsNeeded === 0) return Infinity;
    const counting = [...this.#others.values()].filter((other) => other.counts);
    const times = counting.map((other) => other.confirmedMs).toSorted((one, other) => other - one);
    return (times[this.#confirmationsNeeded - 1] ?? -Infinity) + this.#lapseMs;
  }

  /**
   * Returns true when our acceptor has to begin a recovery wait now. That is the case while a member refuses
   * us, until a majority has confirmed us. It is also the case when another process may have voted since we
   * did, because we don't know its promises. Called several times a second.
   */
  needsRecoveryWait(nowMs: number, ready: boolean): boolean {
    if (this.isDuplicate) return true;
    const others = [...this.#others.values()];
    if (this.votes(nowMs)) {
      this.#waitingSinceMs = Infinity;
      // While we vote, a member that confirms us confirms no other process.
      if (ready) for (const other of others) other.counts = true;
      return false;
    }
    const confirming = others.filter((other) => nowMs - other.confirmedMs <= this.#lapseMs);
    const enough = confirming.length >= this.#confirmationsNeeded;
    if (!this.#begun) return !enough || this.#begin(confirming);
    // Any process that voted meanwhile was confirmed by one of these members, and none of them has met a
    // process other than us.
    const vouching = confirming.filter((other) => other.counts || other.knewUs);
    if (enough && vouching.length >= this.#blocking) {
      for (const other of vouching) other.counts = true;
      return false;
    }
    this.#waitingSinceMs = enough ? Math.min(this.#waitingSinceMs, nowMs) : Infinity;
    return nowMs - this.#waitingSinceMs > this.#lapseMs && this.#begin(confirming);
  }

  #begin(confirming: readonly OtherMember[]): true {
    for (const other of confirming) other.counts = true;
    this.#begun = true;
    this.#waitingSinceMs = Infinity;
    return true;
  }

  get isDuplicate(): boolean {
    return this.#refusals.size > 0;
  }

  /** A notice for the operator, shown in the status. */
  notice(nowMs: number): string | undefined {
    for (const text of this.#refusals.values()) return text;
    return this.#seenDuplicate !== undefined && nowMs < this.#seenDuplicate.untilMs
      ? this.#seenDuplicate.text
      : undefined;
  }
}

function differs(connected: ReadonlyMap<string, string>, id: string, incarnation: string): boolean {
  const other = connected.get(id);
  return other !== undefined && other !== incarnation;
}
