import type { Contender, OwnLease, Wanted } from "./contender.js";
import { LeaseholdError } from "../errors.js";

/** Callers of one process that may wait for one resource: more than this is a leak, not a queue. */
export const waitersMax = 10_000;

/**
 * The callers of this process that want one resource, and the lease on it if this process has one. The queue
 * passes on one *turn*: its owner makes the process's only attempt, and a granted lease keeps the turn until
 * it has been released.
 *
 * ```
 *        a contender wants the turn            granted: occupy
 *  free ───────────────────────────▶ attempt ─────────────────▶ lease
 *    ▲                                  │                         │
 *    ├──── held, failed, gone: settle ◀─┘                         │
 *    └──── released: vacate ◀─────────────────────────────────────┘
 * ```
 *
 * Waiters take turns first in, first out. A try never queues behind waiters: it shares the result of the
 * attempt in flight, and makes its own only when that one failed. A try that failed answers all tries that
 * were there when it began: attempts for each of them, one after the other, could take hours while nobody
 * answers.
 *
 * A caller that attaches goes before all others: the lease that blocks them is the one it takes over. Only a
 * lease of this process is an answer for it.
 *
 * Its *users* are the contenders from `join` to `leave`, also after they were answered. When the last one
 * leaves, the queue retires for good, and only the lease remains, from which another queue can be made.
 */
export class LocalQueue<Lease extends OwnLease> {
  readonly resource: string;
  /** The last attempt was not granted, and no hint has arrived since. */
  contended = false;

  #waiters: ContenderList<Lease> | undefined;
  #tries: ContenderList<Lease> | undefined;
  #attachers: ContenderList<Lease> | undefined;
  #turn: "free" | "attempt" | "lease" = "free";
  #lease: Lease | undefined;
  /**
   * The first waiter was just refused because another participant has the resource, and sleeps until that
   * lease ends.
   */
  #heldElsewhere = false;
  #users = 0;
  #retired = false;
  #nextTicket = 0;
  /** Callers with a lower ticket were here when the attempt in flight began. */
  #turnTicket = 0;
  readonly #unused: (queue: LocalQueue<Lease>) => void;

  /**
   * @param lease the lease that has the turn, if any
   * @param unused is called once, when the last user has left
   */
  constructor(resource: string, lease: Lease | undefined, unused: (queue: LocalQueue<Lease>) => void) {
    this.resource = resource;
    this.#unused = unused;
    this.#lease = lease;
    if (lease !== undefined) this.#turn = "lease";
  }

  /** The lease that has the turn, from its grant until it has been released. */
  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** @throws LeaseholdError `TOO_MANY_WAITERS` */
  join(contender: Contender<Wanted, Lease>): void {
    const list = this.#listOf(contender);
    if (list.size >= waitersMax) {
      throw new LeaseholdError(
        "TOO_MANY_WAITERS",
        `${waitersMax} callers of this process already wait for ${JSON.stringify(this.resource)}`,
      );
    }
    if (this.#retired) throw new Error(`assertion failed: the queue of ${this.resource} has retired`);
    this.#users += 1;
    list.add(contender);
    contender.queue = this;
    contender.ticket = this.#nextTicket++;
    contender.wantsTurn = true;
    // Checked for every contender: the check ends an expired lease even if its timer is late.
    const isHeld = this.#isHeld();
    if (isHeld && !contender.patient && (!contender.attaches || this.#turn === "lease"))
      this.#answer(contender, "held");
    this.#passOn();
  }

  /** The contender, back from its sleep, wants to try again. */
  rejoin(contender: Contender<Wanted, Lease>): void {
    contender.wantsTurn = true;
    this.#passOn();
  }

  /** The attempt was not granted: another has the resource, the attempt failed, or the caller has gone. */
  settle(contender: Contender<Wanted, Lease>, outcome: "held" | "gone" | LeaseholdError): void {
    contender.hasTurn = false;
    this.#turn = "free";
    if (contender.attaches) {
      // The outcome of a handle says nothing about callers without one.
      this.#attachers?.delete(contender);
      this.#passOn();
      return;
    }
    this.contended = true;
    if (!contender.patient) this.#tries?.delete(contender);
    if (outcome === "held") {
      this.#heldElsewhere = contender.patient;
      this.#answerTries("held");
    } else if (outcome !== "gone" && !contender.patient) {
      // A waiter's attempt may have been shorter than theirs would be.
      this.#answerTries(outcome, this.#turnTicket);
    }
    this.#passOn();
  }

  /** The attempt was granted a lease, which keeps the turn. */
  occupy(contender: Contender<Wanted, Lease>, lease: Lease): void {
    contender.hasTurn = false;
    this.#turn = "lease";
    this.#lease = lease;
    this.contended = false;
    this.#answerTries("held");
    while (this.#attachers?.first !== undefined) this.#answer(this.#attachers.first, "held");
  }

  /** The lease has been released. */
  vacate(): void {
    this.#lease = undefined;
    this.#turn = "free";
    this.#passOn();
  }

  /** The caller was served or has gone. Called once for each that joined. */
  leave(contender: Contender<Wanted, Lease>): void {
    if (contender.hasTurn) this.settle(contender, "gone");
    if (contender.patient) {
      if (this.#waiters?.delete(contender) === true) this.#heldElsewhere = false;
      if (this.#waiters?.size === 0) this.#waiters = undefined;
    } else if (contender.attaches) {
      this.#attachers?.delete(contender);
    } else {
      this.#tries?.delete(contender);
      if (this.#tries?.size === 0) this.#tries = undefined;
    }
    contender.wantsTurn = false;
    this.#passOn();
    this.#userGone();
  }

  /** The resource may have become free: wakes the first waiter. False when there is none. */
  hint(): boolean {
    this.#heldElsewhere = false;
    this.contended = false;
    const head = this.#waiters?.first;
    head?.wake();
    return head !== undefined;
  }

  /**
   * Whether another has it, as far as this process knows. It checks its own lease, whose loss may have gone
   * unnoticed.
   */
  #isHeld(): boolean {
    if (this.#turn === "lease") return this.#lease !== undefined && this.#lease.remaining() > 0;
    return this.#turn === "free" && this.#heldElsewhere;
  }

  /**
   * The first waiter goes before a try. It sleeps after an attempt of its own, and a try leaves when it is
   * answered, so neither can starve the other.
   */
  #passOn(): void {
    if (this.#turn !== "free") return;
    const head = this.#waiters?.first;
    const next = this.#attachers?.first ?? (head?.wantsTurn === true ? head : this.#tries?.first);
    if (next === undefined) return;
    this.#turn = "attempt";
    this.#turnTicket = this.#nextTicket;
    this.#heldElsewhere = false;
    next.wantsTurn = false;
    next.hasTurn = true;
    next.wake();
  }

  #listOf({ patient, attaches }: Contender<Wanted, Lease>): ContenderList<Lease> {
    if (patient) return (this.#waiters ??= new ContenderList());
    if (attaches) return (this.#attachers ??= new ContenderList());
    return (this.#tries ??= new ContenderList());
  }

  #userGone(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#retired = true;
    if (this.#retired) this.#unused(this);
  }

  /** Answers all tries, or those that arrived before the given ticket. */
  #answerTries(answer: "held" | LeaseholdError, beforeTicket = Infinity): void {
    let next: Contender<Wanted, Lease> | undefined;
    for (let each = this.#tries?.first; each !== undefined && each.ticket < beforeTicket; each = next) {
      next = each.next;
      if (!each.hasTurn) this.#answer(each, answer);
    }
  }

  /** Makes everyone in this queue give up. */
  giveUpAll(reason: LeaseholdError): void {
    for (const list of [this.#waiters, this.#tries, this.#attachers])
      for (let each = list?.first; each !== undefined; each = each.next) each.giveUp(reason);
  }

  #answer(contender: Contender<Wanted, Lease>, answer: "held" | LeaseholdError): void {
    this.#listOf(contender).delete(contender);
    contender.answer = answer;
    contender.wake();
  }
}

/** Contenders in order of arrival: each knows its neighbours, and is in one list at most. */
class ContenderList<Lease extends OwnLease> {
  first: Contender<Wanted, Lease> | undefined;
  #last: Contender<Wanted, Lease> | undefined;
  size = 0;

  add(contender: Contender<Wanted, Lease>): void {
    const last = this.#last;
    contender.previous = last;
    if (last === undefined) this.first = contender;
    else last.next = contender;
    this.#last = contender;
    this.size += 1;
  }

  delete(contender: Contender<Wanted, Lease>): boolean {
    const { previous, next } = contender;
    if (previous === undefined && this.first !== contender) return false;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    contender.previous = undefined;
    contender.next = undefined;
    this.size -= 1;
    return true;
  }
}
