import { NumberMap } from "leasehold/common";
import type { ReadState } from "../raft/types.js";
import type { Context } from "./context.js";
import type { LeaseKeeping } from "./lease-keeping.js";
import { type Ask, failureOf, type LeaderRefusal } from "./proposals/leader-messages.js";

interface Question {
  readonly ask: Ask;
  readonly deadlineMs: number;
}

/** A question that may be answered once the index is applied. */
interface Confirmed {
  readonly question: Question;
  readonly index: number;
  /** The entry at `index` wrote the lease's full time for this. */
  readonly isWhole: boolean;
}

/**
 * Requests that only the leader can answer, from its own clients and its followers' clients. Nothing is
 * answered before a majority has confirmed, after the client asked, that this server still leads (ReadIndex,
 * thesis 6.4): a leader deposed meanwhile must not report a lease as alive (etcd 12528, 15247). A round of
 * heartbeats confirms that; or a follower's request itself, if the two servers are a majority. For a refresh
 * the leader's clock suffices, too: leases rely on clocks anyway, but reads must not. Waiting requests share
 * a round. Raft counts rounds (`raft/reads.ts`), and this queue has the requests that wait for them.
 */
export class ReadIndexQueue {
  readonly #context: Context;
  readonly #leases: LeaseKeeping;
  /** Whether a client of this server still waits for the answer. */
  readonly #isOpen: (number: number) => boolean;
  #forming: Question[] = [];
  readonly #rounds = new NumberMap<Question[]>();
  #confirmed: Confirmed[] = [];
  #count = 0;
  #lastRound = 0;

  constructor(context: Context, leases: LeaseKeeping, isOpen: (number: number) => boolean) {
    this.#context = context;
    this.#leases = leases;
    this.#isOpen = isOpen;
  }

  ask(ask: Ask): void {
    if (!this.#context.leads) this.#refuse(ask, "leaderChanged");
    else if (this.#count >= this.#context.limits.asksMax) this.#refuse(ask, "tooManyRequests");
    else {
      this.#count += 1;
      const question = { ask, deadlineMs: this.#context.nowMs + ask.leftMs };
      const index = this.#indexFor(ask);
      if (index === undefined) this.#forming.push(question);
      else this.#confirm(question, index);
    }
  }

  /** Returns the index at which the question may be answered without a round, if there is one. */
  #indexFor({ about, from }: Ask): number | undefined {
    const { raft } = this.#context;
    const index = raft.readIndexOfAsker(from);
    return index === undefined && about === "refresh" ? raft.readIndexByClock() : index;
  }

  /** Begins a round for all requests since the last one. */
  flush(): void {
    const { limits, raft } = this.#context;
    if (this.#forming.length === 0 || this.#rounds.size >= limits.roundsMax) return;
    const questions = this.#forming;
    this.#forming = [];
    this.#lastRound += 1;
    const begun = raft.readIndex(this.#lastRound);
    if (begun.accepted) {
      this.#rounds.set(this.#lastRound, questions);
      return;
    }
    for (const { ask } of questions) this.#refuse(ask, failureOf(begun.reason));
    this.#count -= questions.length;
  }

  confirmed({ id, index }: ReadState): void {
    const questions = this.#rounds.get(id);
    if (questions === undefined) return;
    this.#rounds.delete(id);
    for (const question of questions) this.#confirm(question, index);
  }

  #confirm(question: Question, index: number): void {
    this.#confirmed.push({ question, index, isWhole: false });
  }

  /** Answers confirmed requests whose index has been applied. */
  release(): void {
    const { appliedIndex } = this.#context;
    if (!this.#confirmed.some(({ index }) => index <= appliedIndex)) return;
    const confirmed = this.#confirmed;
    this.#confirmed = confirmed.filter(({ index }) => index > appliedIndex);
    const short: Question[] = [];
    for (const each of confirmed)
      if (each.index <= appliedIndex && !this.#answer(each)) short.push(each.question);
    if (short.length > 0) this.#writeWhole(short);
  }

  /** Leadership is lost, or begins in another term. */
  reset(): void {
    const questions = [
      ...this.#forming,
      ...[...this.#rounds.values()].flat(),
      ...this.#confirmed.map(({ question }) => question),
    ];
    this.#forming = [];
    this.#rounds.clear();
    this.#confirmed = [];
    this.#count = 0;
    for (const { ask } of questions) this.#refuse(ask, "leaderChanged");
  }

  /** Returns false if something must be written to the log first. */
  #answer({ question, index, isWhole }: Confirmed): boolean {
    const { ask, deadlineMs } = question;
    const { about, from, lease, number } = ask;
    const { id, nowMs, state } = this.#context;
    const isWanted = nowMs < deadlineMs && (from !== id || this.#isOpen(number));
    // Nobody waits any longer: a refresh now would keep a lease alive that has no holder (etcd 21638).
    if (!isWanted) {
      this.#count -= 1;
      return true;
    }
    const { tracker } = this.#leases;
    if (about === "refresh" && tracker.isWrittenShort(lease, isWhole ? index : 0)) return false;
    // From before the refresh: at this revision the lease and its keys existed.
    const revision = state.revisions.current;
    let ttlSeconds = 0;
    if (about === "refresh") ttlSeconds = tracker.refresh(lease, nowMs);
    if (about === "remaining") {
      const leftMs = tracker.leftMs(lease, nowMs);
      ttlSeconds = leftMs === undefined ? -1 : Math.floor(leftMs / 1_000);
    }
    this.#count -= 1;
    this.#context.send({ kind: "leader-answer", from: id, to: from, number, index, revision, ttlSeconds });
    return true;
  }

  /** Writes the full times of the leases; they are refreshed once that is applied. */
  #writeWhole(questions: readonly Question[]): void {
    const { leasesPerBatch } = this.#context.limits;
    for (let start = 0; start < questions.length; start += leasesPerBatch) {
      const batch = questions.slice(start, start + leasesPerBatch);
      const index = this.#leases.writeWhole(batch.map(({ ask }) => ask.lease));
      if (index !== undefined) {
        for (const question of batch) this.#confirmed.push({ question, index, isWhole: true });
        continue;
      }
      for (const { ask } of batch) this.#refuse(ask, "tooManyRequests");
      this.#count -= batch.length;
    }
  }

  #refuse({ from, number }: Ask, failure: LeaderRefusal["failure"]): void {
    const { id, leadership } = this.#context;
    this.#context.send({
      kind: "leader-refusal",
      from: id,
      to: from,
      number,
      term: leadership.term,
      failure,
    });
  }
}
