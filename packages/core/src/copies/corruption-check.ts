import { isMember } from "../raft/membership.js";
import type { MemberId, Membership } from "../raft/types.js";
import { type Checksum, hashOfKeys } from "../state/hash.js";
import { type Steps, unitsPerStep } from "../state/steps.js";
import type { CoreState } from "../state/state.js";
import {
  compare,
  type Comparison,
  type Copy,
  type CopyAnswer,
  type CopyMessage,
  type CopyQuestion,
} from "./copies.js";

/** Members silent for this many election timeouts are not waited for. */
const silentElections = 3;
/** Repetitions of a request per election timeout. */
const questionsPerElection = 2;
/** Timeout of a comparison, ms. Members still working then count as silent. */
const comparisonMsMax = 60_000;

/**
 * A server numbers its comparisons from a random start below this, so numbers do not collide after a restart.
 */
const firstNumberMax = 2 ** 48;

/** The check's requirements of its server. */
export interface CheckedServer {
  readonly id: MemberId;
  readonly nowMs: number;
  readonly electionMs: number;
  readonly state: CoreState;
  /** Index of the last entry in the state. */
  readonly appliedIndex: number;
  readonly raft: { readonly membership: Membership };
  readonly limits: { readonly unitsPerTurn: number };
  readonly random: { next(): number };
  readonly send: (message: CopyMessage) => void;
  /** Proposes to the log, if this server leads. */
  propose(body: { case: "corruptAlarm"; value: { member: MemberId; raised: boolean } }): unknown;
}

/** A hash in progress, of this server's content at one moment. */
interface Hashing {
  readonly compacted: number;
  readonly steps: Steps<number>;
}

/** A request from another server. */
interface Question {
  readonly asked: CopyQuestion;
  /** When the request was last repeated. Abandoned requests are dropped. */
  heardMs: number;
  hashing: Hashing | undefined;
  copy: Copy | undefined;
}

/** A comparison begun by this server. */
interface Round {
  readonly number: number;
  readonly index: number;
  readonly revision: number;
  /** Begun by the leader, which raises an alarm if members are corrupt. */
  readonly isPeriodic: boolean;
  readonly hashing: Hashing;
  readonly begunMs: number;
  askedMs: number;
  own: Copy | undefined;
  readonly others: Map<MemberId, Copy | undefined>;
  readonly heardMs: Map<MemberId, number>;
}

/**
 * Compares the keys of all servers (etcd: corruption check). The leader does so periodically, and raises an
 * alarm on differences; a server can also do so when it starts. The content at one moment is hashed while the
 * server continues, a bounded part per turn.
 */
export class CorruptionCheck {
  readonly #server: CheckedServer;
  readonly #checksum: Checksum;
  readonly #everyMs: number;
  /** At most one per server. */
  readonly #questions = new Map<MemberId, Question>();
  #round: Round | undefined;
  /** A comparison to begin between two commands. */
  #wanted: "periodic" | "once" | undefined;
  #number: number | undefined;
  #nextMs = 0;
  #compared: Comparison | undefined;

  /** @param everyMs interval of periodic comparisons; 0: none */
  constructor(server: CheckedServer, checksum: Checksum, everyMs: number) {
    this.#server = server;
    this.#checksum = checksum;
    this.#everyMs = everyMs;
  }

  get #hashings(): (Question | Round)[] {
    const all = [...(this.#round === undefined ? [] : [this.#round]), ...this.#questions.values()];
    return all.filter((each) => each.hashing !== undefined && copyOf(each) === undefined);
  }

  /** There is work left for another turn. */
  get isBusy(): boolean {
    return this.#questions.size + (this.#round === undefined ? 0 : 1) > 0 && this.#hashings.length > 0;
  }

  /** Returns a comparison that has ended since the last call. */
  takeComparison(): Comparison | undefined {
    const compared = this.#compared;
    this.#compared = undefined;
    return compared;
  }

  /** Compares once, on a leader or follower. */
  demand(): void {
    this.#wanted = "once";
  }

  // Time

  /** @param isLeading this server leads, and its state has every acknowledged change */
  tick(isLeading: boolean): void {
    const { electionMs, nowMs } = this.#server;
    if (!isLeading || this.#everyMs === 0) this.#nextMs = nowMs + this.#everyMs;
    else if (nowMs >= this.#nextMs) {
      this.#nextMs = nowMs + this.#everyMs;
      this.#wanted ??= "periodic";
    }
    for (const [member, { heardMs }] of this.#questions)
      if (nowMs - heardMs > silentElections * electionMs) this.#questions.delete(member);
    const round = this.#round;
    if (round !== undefined && nowMs - round.askedMs >= electionMs / questionsPerElection) this.#ask(round);
    this.#finish();
  }

  turn(): void {
    this.#begin();
    const { limits } = this.#server;
    // Counts steps here, not visits in the state, since the state may be replaced while a hash is in
    // progress.
    for (let units = 0; units < limits.unitsPerTurn; units += unitsPerStep) {
      const [first] = this.#hashings;
      if (first === undefined) break;
      this.#goOn(first);
    }
    this.#finish();
  }

  #begin(): void {
    const { appliedIndex, nowMs, raft, random, state } = this.#server;
    // Only between two commands: the state then belongs to a single index.
    if (state.isApplying) return;
    for (const question of this.#questions.values())
      if (question.hashing === undefined && question.copy === undefined) this.#look(question);
    if (this.#wanted === undefined || this.#round !== undefined) return;
    const isPeriodic = this.#wanted === "periodic";
    this.#wanted = undefined;
    const { learners, voters } = raft.membership;
    const others = [...voters, ...learners].filter((id) => id !== this.#server.id);
    // A number not used before: others may still answer a comparison that this server began before a restart.
    this.#number = 1 + (this.#number ?? Math.floor(random.next() * firstNumberMax));
    this.#round = {
      number: this.#number,
      index: appliedIndex,
      revision: state.revisions.current,
      isPeriodic,
      hashing: this.#hash(state.revisions.current),
      begunMs: nowMs,
      askedMs: nowMs,
      own: undefined,
      others: new Map(others.map((id) => [id, undefined])),
      heardMs: new Map(others.map((id) => [id, nowMs])),
    };
    this.#ask(this.#round);
  }

  #hash(revision: number): Hashing {
    const view = this.#server.state.revisions.view();
    return { compacted: view.compacted, steps: hashOfKeys(view, revision, this.#checksum) };
  }

  #goOn(each: Question | Round): void {
    const { compacted, steps } = each.hashing!;
    const step = steps.next();
    if (step.done !== true) return;
    const copy: Copy = { member: this.#server.id, outcome: "hash", compacted, hash: step.value };
    if ("own" in each) each.own = copy;
    else this.#settle(each, copy);
  }

  // On the answering server

  asked(asked: CopyQuestion): void {
    const { nowMs } = this.#server;
    const known = this.#questions.get(asked.from);
    if (known?.asked.number === asked.number) {
      known.heardMs = nowMs;
      this.#answer(known);
      return;
    }
    // A new request from a server replaces its earlier one.
    const question: Question = { asked, heardMs: nowMs, hashing: undefined, copy: undefined };
    this.#questions.set(asked.from, question);
    this.#answer(question);
  }

  #look(question: Question): void {
    const { appliedIndex, state } = this.#server;
    const { index, revision } = question.asked;
    if (appliedIndex < index) return;
    const { compacted, current } = state.revisions;
    const nothing = { member: this.#server.id, compacted, hash: 0 };
    if (current < revision) this.#settle(question, { ...nothing, outcome: "behind" });
    else if (compacted > revision) this.#settle(question, { ...nothing, outcome: "compacted" });
    else question.hashing = this.#hash(revision);
  }

  #settle(question: Question, copy: Copy): void {
    question.copy = copy;
    this.#answer(question);
  }

  #answer({ asked, copy }: Question): void {
    const { compacted, hash, outcome } = copy ?? { compacted: 0, hash: 0, outcome: "working" };
    const { from: to, number } = asked;
    this.#server.send({
      kind: "copy-answer",
      from: this.#server.id,
      to,
      number,
      outcome,
      compacted,
      hash,
    });
  }

  // On the asking server

  #ask(round: Round): void {
    const { id: from, nowMs } = this.#server;
    round.askedMs = nowMs;
    const { index, number, revision } = round;
    for (const [to, copy] of round.others)
      if (copy === undefined) this.#server.send({ kind: "copy-question", from, to, number, index, revision });
  }

  answered({ from: member, number, outcome, compacted, hash }: CopyAnswer): void {
    const round = this.#round;
    if (round?.number !== number || !round.others.has(member)) return;
    round.heardMs.set(member, this.#server.nowMs);
    if (outcome !== "working") round.others.set(member, { member, outcome, compacted, hash });
  }

  #finish(): void {
    const round = this.#round;
    if (round?.own === undefined) return;
    const { electionMs, nowMs, raft } = this.#server;
    const isAwaited = ([id, copy]: [MemberId, Copy | undefined]) =>
      copy === undefined && nowMs - round.heardMs.get(id)! <= silentElections * electionMs;
    if (nowMs - round.begunMs < comparisonMsMax && [...round.others].some(isAwaited)) return;
    this.#round = undefined;
    // Uses the present membership. Members removed meanwhile are skipped, as their alarms would follow their
    // removal in the log.
    const others = new Map([...round.others].filter(([id]) => isMember(raft.membership, id)));
    this.#compared = compare(round.revision, round.own, others, raft.membership);
    if (round.isPeriodic) this.#raise(this.#compared.corrupt);
  }

  /** If the log does not accept an alarm, the next comparison repeats it. */
  #raise(members: readonly MemberId[]): void {
    const { raft, state } = this.#server;
    for (const member of members)
      // No alarm for a leader that removes itself: it leads until the commit, but is no longer a member.
      if (!state.corruptAlarms.has(member) && (member === 0n || isMember(raft.membership, member)))
        this.#server.propose({ case: "corruptAlarm", value: { member, raised: true } });
  }
}

function copyOf(each: Question | Round): Copy | undefined {
  return "own" in each ? each.own : each.copy;
}
