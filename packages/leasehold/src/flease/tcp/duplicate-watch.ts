import { majorityOf } from "../../common/majority.js";

/**
 * Guards against a duplicate member: two processes under one member's id (`docs/operations.md`; the status
 * calls such a process a `twin`). Quorums count ids, so a majority with one process and a majority with the
 * other need not have a member in common, and there would be two holders. Pure: it is told the time, on the
 * steady clock.
 *
 * A process votes only as long as enough other members confirm it. A member confirms one process of an id at
 * a time: it lets no second one in before the first must have noticed that it is no longer confirmed. Members
 * tell each other whom they are connected with, so two members that confirm different processes find out as
 * soon as they are connected.
 */

/** How long our status says that another process was seen under our id. */
export const DUPLICATE_NOTICE_MS = 60_000;

/** Another member, as far as we are connected. */
interface OtherMember {
  readonly incarnation: string;
  /** Up to this time of ours it is certain that it was connected with us. */
  confirmedMs: number;
  /**
   * Whether its confirmation counts: it has confirmed no other process under our id since our recovery wait
   * began, or since our acceptor voted last.
   */
  counts: boolean;
  /** It says that this very process was the last under our id that it was connected with before. */
  knewUs: boolean;
  /** By id, the incarnations that it is connected with; `undefined` until it has told. */
  connected: ReadonlyMap<string, string> | undefined;
}

export interface DuplicateWatchOptions {
  /** How many members there are. */
  readonly members: number;
  /**
   * A confirmation counts for so long: shorter than any member keeps a connection on which it hears nothing.
   */
  readonly lapseMs: number;
}

export class DuplicateWatch {
  readonly #lapseMs: number;
  /** How many others make a majority with us. */
  #confirmationsNeeded = 0;
  /** This many other members, or more, have one in common with every set that can confirm another process. */
  #blocking = 0;
  /** By id. */
  readonly #others = new Map<string, OtherMember>();
  /** The incarnation that was connected last, by id: also of those that are not connected now. */
  readonly #last = new Map<string, string>();
  /** Members that refused us, and why. Each stands until that member takes us. */
  readonly #refusals = new Map<string, string>();
  #seenDuplicate: { readonly text: string; readonly untilMs: number } | undefined;
  /** True since the recovery wait that our acceptor began with a majority connected. */
  #begun = false;
  /** Since when a majority is connected that does not count. */
  #waitingSinceMs = Infinity;
  /** We vote up to this time at least. */
  #votesUntilMs = -Infinity;

  constructor(options: DuplicateWatchOptions) {
    this.#lapseMs = options.lapseMs;
    this.members = options.members;
  }

  /** How many members have a vote; in a joint view all of both. A majority of those meets one of either. */
  set members(members: number) {
    const majority = majorityOf(members);
    if (this.#confirmationsNeeded < majority - 1) this.#votesUntilMs = -Infinity;
    this.#confirmationsNeeded = majority - 1;
    this.#blocking = members - majority + 1;
  }

  /**
   * A member is connected. Returns the incarnation of its id that was connected before, `""` if there was
   * none.
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

  /** The member has received what we sent it at this time of our clock. */
  confirmed(id: string, sentMs: number): void {
    const other = this.#others.get(id);
    if (other !== undefined && sentMs > other.confirmedMs) other.confirmedMs = sentMs;
  }

  /**
   * A member tells whom it is connected with, and whether this very process was the last under our id that it
   * was connected with before. Returns the ids under which it is connected with another process than we are.
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

  /** Why a process must not be let in as this member: another one is connected elsewhere. */
  objection(id: string, incarnation: string): string | undefined {
    for (const [teller, { connected }] of this.#others) {
      if (teller === id || connected === undefined || !differs(connected, id, incarnation)) continue;
      return `another process is the member ${JSON.stringify(id)} already, connected with ${JSON.stringify(teller)}; two processes must not be one member`;
    }
    return undefined;
  }

  /** Whether what this member confirms counts: it has confirmed no other process under our id. */
  counts(id: string): boolean {
    return this.#others.get(id)?.counts === true;
  }

  /** By id, whom we are connected with, and ourselves not: what the other members are told. */
  get connected(): Record<string, string> {
    return Object.fromEntries([...this.#others].map(([id, { incarnation }]) => [id, incarnation]));
  }

  /** The member is connected with another process under our id, or with one that is. */
  refusedBy(id: string, text: string): void {
    this.#refusals.set(id, text);
    this.#begun = false;
    this.#votesUntilMs = -Infinity;
  }

  /** A member tells that another process wants to be us, and was refused. */
  duplicateSeen(text: string, nowMs: number): void {
    this.#seenDuplicate = { text, untilMs: nowMs + DUPLICATE_NOTICE_MS };
  }

  /** We are another incarnation from now on, and all connections are made anew. */
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
   * To be called several times a second. True when our acceptor has to begin a recovery wait now: as long as
   * a member refuses us, until a majority has confirmed us, and when another process may have voted since we
   * did, because we do not know what that process promised.
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
    // A process that voted meanwhile was confirmed by one of these, and none of these has met another process
    // than us.
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

  /** What the operator should know, for the status. */
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
