import { majorityOf } from "../../lease/majority.js";

/**
 * Guards against two processes under one member's id (`docs/operations.md`). Quorums count ids, so a majority with the one
 * and a majority with the other need not meet: that would be two holders. Pure: it is told the time, on the steady clock.
 *
 * A process votes only as long as enough other members confirm it, and a member confirms one process of an id at a time: it lets no
 * second one in before the first has had to notice that it is not confirmed any more. Members tell each other whom they are
 * connected with, so that two members that confirm different processes find out as soon as they are connected.
 */

/** Somebody else was seen under our id: how long this stays in our status. */
export const RIVAL_NOTICE_MS = 60_000;

/** Another member, as far as we are connected. */
interface Fellow {
  readonly incarnation: string;
  /** Up to this time of ours it is certain that it was connected with us. */
  confirmedMs: number;
  /**
   * Whether its confirmation counts: no other process under our id had it since our acceptor began to be silent, or since it
   * voted last.
   */
  counts: boolean;
  /** It says that this very process was the last under our id that it was connected with before. */
  knewUs: boolean;
  /** By id, the incarnations that it is connected with; `undefined` until it has told. */
  tells: ReadonlyMap<string, string> | undefined;
}

export interface TwinWatchOptions {
  /** How many members there are. */
  readonly members: number;
  /** A confirmation counts for so long: shorter than any member keeps a connection on which it hears nothing. */
  readonly lapseMs: number;
}

export class TwinWatch {
  readonly #lapseMs: number;
  /** How many others make a majority with us. */
  readonly #others: number;
  /** So many others, or more, have one in common with those that make another process vote. */
  readonly #blocking: number;
  /** By id. */
  readonly #fellows = new Map<string, Fellow>();
  /** The incarnation that was connected last, by id: also of those that are not connected now. */
  readonly #last = new Map<string, string>();
  /** Members that refused us, and why. Each stands until that member takes us. */
  readonly #refusals = new Map<string, string>();
  #rival: { readonly text: string; readonly untilMs: number } | undefined;
  /** True since our acceptor last began to be silent with a majority connected. */
  #begun = false;
  /** Since when a majority is connected that does not count. */
  #waitingSinceMs = Infinity;
  /** We vote up to this time at least. */
  #votesUntilMs = -Infinity;

  constructor(options: TwinWatchOptions) {
    const majority = majorityOf(options.members);
    this.#lapseMs = options.lapseMs;
    this.#others = majority - 1;
    this.#blocking = options.members - majority + 1;
  }

  /** A member is connected. Returns the incarnation of its id that was connected before, `""` if there was none. */
  linked(id: string, incarnation: string): string {
    const before = this.#last.get(id) ?? "";
    this.#last.set(id, incarnation);
    this.#fellows.set(id, {
      incarnation,
      confirmedMs: -Infinity,
      counts: false,
      knewUs: false,
      tells: undefined,
    });
    this.#refusals.delete(id);
    return before;
  }

  unlinked(id: string): void {
    this.#fellows.delete(id);
    this.#votesUntilMs = -Infinity;
  }

  /** The member has received what we sent it at this time of our clock. */
  confirmed(id: string, sentMs: number): void {
    const fellow = this.#fellows.get(id);
    if (fellow !== undefined && sentMs > fellow.confirmedMs) fellow.confirmedMs = sentMs;
  }

  /**
   * A member tells whom it is connected with, and whether this very process was the last under our id that it was connected with
   * before. Returns the ids that are another process at its end than at ours.
   */
  told(id: string, tells: ReadonlyMap<string, string>, knewUs: boolean): string[] {
    const fellow = this.#fellows.get(id);
    if (fellow === undefined) return [];
    if (fellow.tells === undefined) fellow.knewUs = knewUs;
    fellow.tells = tells;
    return [...this.#fellows]
      .filter(([other, { incarnation }]) => differs(tells, other, incarnation))
      .map(([other]) => other);
  }

  /** Why a process must not be let in as this member: another one is connected elsewhere. */
  objection(id: string, incarnation: string): string | undefined {
    for (const [teller, { tells }] of this.#fellows) {
      if (teller === id || tells === undefined || !differs(tells, id, incarnation)) continue;
      return `another process is the member ${JSON.stringify(id)} already, connected with ${JSON.stringify(teller)}; two processes must not be one member`;
    }
    return undefined;
  }

  /** By id, whom we are connected with, and ourselves not: what the other members are told. */
  get connected(): Record<string, string> {
    return Object.fromEntries([...this.#fellows].map(([id, { incarnation }]) => [id, incarnation]));
  }

  /** The member is connected with another process under our id, or with one that is. */
  refusedBy(id: string, text: string): void {
    this.#refusals.set(id, text);
    this.#begun = false;
    this.#votesUntilMs = -Infinity;
  }

  /** A member tells that another process wants to be us, and was refused. */
  rivalSeen(text: string, nowMs: number): void {
    this.#rival = { text, untilMs: nowMs + RIVAL_NOTICE_MS };
  }

  /** We are another incarnation from now on, and all connections are made anew. */
  restarted(): void {
    this.#fellows.clear();
    this.#begun = false;
    this.#votesUntilMs = -Infinity;
  }

  /** Whether our acceptor may answer at this moment. */
  votes(nowMs: number): boolean {
    if (nowMs > this.#votesUntilMs) this.#votesUntilMs = this.#confirmedUntilMs();
    return nowMs <= this.#votesUntilMs;
  }

  #confirmedUntilMs(): number {
    if (this.isTwin || !this.#begun) return -Infinity;
    if (this.#others === 0) return Infinity;
    const counting = [...this.#fellows.values()].filter((fellow) => fellow.counts);
    const times = counting.map((fellow) => fellow.confirmedMs).toSorted((one, other) => other - one);
    return (times[this.#others - 1] ?? -Infinity) + this.#lapseMs;
  }

  /**
   * To be called several times a second. True when our acceptor has to begin a recovery wait now: as long as we are refused, until a
   * majority has been met, and when another process may have voted since we did. Nobody knows what it promised.
   */
  mustBeSilent(nowMs: number, ready: boolean): boolean {
    if (this.isTwin) return true;
    const fellows = [...this.#fellows.values()];
    if (this.votes(nowMs)) {
      this.#waitingSinceMs = Infinity;
      // While we vote nobody who confirms us confirms another.
      if (ready) for (const fellow of fellows) fellow.counts = true;
      return false;
    }
    const confirming = fellows.filter((fellow) => nowMs - fellow.confirmedMs <= this.#lapseMs);
    const enough = confirming.length >= this.#others;
    if (!this.#begun) return !enough || this.#begin(confirming);
    // Whoever voted meanwhile was confirmed by one of these, and none of them has had another process than us.
    const vouching = confirming.filter((fellow) => fellow.counts || fellow.knewUs);
    if (enough && vouching.length >= this.#blocking) {
      for (const fellow of vouching) fellow.counts = true;
      return false;
    }
    this.#waitingSinceMs = enough ? Math.min(this.#waitingSinceMs, nowMs) : Infinity;
    return nowMs - this.#waitingSinceMs > this.#lapseMs && this.#begin(confirming);
  }

  #begin(confirming: readonly Fellow[]): true {
    for (const fellow of confirming) fellow.counts = true;
    this.#begun = true;
    this.#waitingSinceMs = Infinity;
    return true;
  }

  get isTwin(): boolean {
    return this.#refusals.size > 0;
  }

  /** What the operator should know, for the status. */
  notice(nowMs: number): string | undefined {
    for (const text of this.#refusals.values()) return text;
    return this.#rival !== undefined && nowMs < this.#rival.untilMs ? this.#rival.text : undefined;
  }
}

function differs(tells: ReadonlyMap<string, string>, id: string, incarnation: string): boolean {
  const other = tells.get(id);
  return other !== undefined && other !== incarnation;
}
