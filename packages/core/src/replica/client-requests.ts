import { NumberMap } from "leasehold/common";
import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { isSerializable } from "../state/check.js";
import { CoreError, refusalFor } from "../state/errors.js";
import type { Applied } from "../state/state.js";
import type { Steps } from "../state/steps.js";
import type { Callers } from "./callers.js";
import { commandFor, encodeCommand, renumbered } from "./commands.js";
import type { Context } from "./context.js";
import type { MemberId } from "../raft/types.js";
import { Forwarding } from "./proposals/forwarding.js";
import type {
  Ask,
  LeaderAnswer,
  LeaderRefusal,
  Propose,
  ProposeChange,
} from "./proposals/leader-messages.js";
import type { MembershipKeeping } from "./membership.js";
import { type PendingRequest, PendingRequests } from "./pending-requests.js";
import { answerRead, refreshAnswer } from "./read-answers.js";
import { ReadScheduler } from "./read-scheduler.js";
import type { ClientRequest, Input } from "./types.js";

interface Asking {
  readonly about: Ask["about"];
  readonly requests: readonly PendingRequest[];
  readonly askedMs: number;
}

interface AnsweredRead {
  readonly answer: LeaderAnswer;
  readonly requests: readonly PendingRequest[];
}

/**
 * Whether this server's state is new enough for the request, so that no leader is needed (etcd:
 * `serializable`).
 */
function isSerializableRead(asked: ClientRequest): boolean {
  if (asked.kind === "range") return asked.request.serializable;
  if (asked.kind === "freeze") return true;
  if (asked.kind === "memberList") return !asked.request.linearizable;
  return asked.kind === "txn" && isSerializable(asked.request);
}

/** Whether the leader judges the request before it is proposed. */
function isMembershipRequest(asked: ClientRequest): boolean {
  switch (asked.kind) {
    case "memberAdd":
    case "memberRemove":
    case "memberPromote":
    case "memberUpdate":
      return true;
    default:
      return false;
  }
}

/**
 * Membership requests are not checked against rights when applied, and rights may have changed: check again.
 */
function lookAgain(pending: PendingRequest): void {
  if (isMembershipRequest(pending.request)) pending.isUnclear = true;
}

/**
 * Requests from one server's clients. Writes go to the leader's log and are answered when they are applied
 * here, never earlier. Reads and refreshes are answered after the leader has confirmed that it leads.
 *
 * A proposal to the leader of one term is appended in that term or never, and terms never decrease along a
 * log (Raft 5.3). So once an entry of a later term is applied here, a proposal that has not been applied
 * never will be, and is proposed again: a dead leader delays no request for longer than an election. Before
 * that nothing is proposed again; if a request's outcome can't be learnt in time, the answer is `request
 * timed out`.
 */
export class ClientRequests {
  readonly #context: Context;
  readonly #members: MembershipKeeping;
  readonly #callers: Callers;
  readonly requests: PendingRequests;
  #number: number;
  /** Not sent to any leader yet. */
  readonly #waiting = new NumberMap<PendingRequest>();
  /** Refused by the leader for now: retried at the next tick or with the next leader. */
  readonly #held = new NumberMap<PendingRequest>();
  readonly #forwarding: Forwarding<PendingRequest>;
  /** Possibly in a leader's log, by command number. */
  readonly #proposed = new NumberMap<PendingRequest>();
  /** Term of the last entry applied here. */
  #reachedTerm = 0;
  /** Requests that the leader was asked about, in order. */
  readonly #asking = new NumberMap<Asking>();
  /** Reads whose index the leader has named, but which is not applied here yet. */
  #answered: AnsweredRead[] = [];
  /** Reads for which the state is new enough. */
  readonly #reads = new ReadScheduler();
  /** Some waiting requests have passed their check and can go to the leader now. */
  #hasCleared = false;
  /** This server's own read index request. `held`: until the next tick or leader. */
  #own: "none" | "held" | "asked" = "none";
  #proposalsFailed = 0;
  #asksFailed = 0;

  constructor(context: Context, members: MembershipKeeping, callers: Callers) {
    this.#context = context;
    this.#members = members;
    this.#callers = callers;
    this.requests = new PendingRequests(context.limits, (pending) => this.#forget(pending));
    // Numbers name commands in the log, which outlives this process: the answer to a command of an earlier
    // process must not be taken for one of this process.
    this.#number = Math.floor(context.random.next() * 2 ** 32) * 2 ** 20;
    this.#forwarding = new Forwarding(context, this.#number + 1);
  }

  isOpen = (number: number): boolean => {
    const requests = this.#asking.get(number)?.requests;
    // An empty list is this server's own request, which has no client.
    return requests !== undefined && (requests.length === 0 || requests.some(({ isOpen }) => isOpen));
  };

  /** Only queues the request: `dispatch` proposes all commands of a turn together, in one write. */
  request(asked: Extract<Input, { kind: "request" }>): void {
    const { credentials, id, request } = asked;
    this.#number += 1;
    try {
      if (this.#context.isLearner && !isSerializableRead(request)) throw new CoreError("notForLearner");
      const command = commandFor(request, this.#context, this.#number);
      const isClear = command === undefined || this.#mayPropose(asked, command);
      const bytes = command && encodeCommand(command, this.#context);
      const pending = this.requests.admit(asked, this.#number, bytes);
      pending.isUnclear = !isClear;
      if (isSerializableRead(request) && this.#callers.mayRead(request, credentials))
        this.#begin(pending, undefined);
      else this.#waiting.set(pending.number, pending);
    } catch (error) {
      this.requests.answerAtOnce(id, refusalFor(error));
    }
  }

  /**
   * A membership change can no longer be refused when it is applied, so it must wait for a confirmed state.
   */
  #mayPropose({ credentials, request }: Extract<Input, { kind: "request" }>, command: Command): boolean {
    return !isMembershipRequest(request) && this.#callers.mayPropose(command, credentials);
  }

  /** This server's state is as new as the request: checks whether the command may be proposed. */
  #clear(pending: PendingRequest): void {
    const { credentials, number, request } = pending;
    try {
      const command = commandFor(request, this.#context, number)!;
      this.#callers.sign(command, credentials);
      pending.command = encodeCommand(command, this.#context);
      pending.isUnclear = false;
      this.#wait(pending, this.#waiting);
      this.#hasCleared = true;
    } catch (error) {
      this.requests.answer(pending, refusalFor(error));
    }
  }

  cancel(id: number): void {
    this.requests.cancel(id);
  }

  /** The client has gone: drops the request, with or without a leader. */
  #forget(pending: PendingRequest): void {
    this.#waiting.delete(pending.number);
    this.#held.delete(pending.number);
    this.#proposed.delete(pending.number);
    this.#forwarding.drop(pending.number);
    this.#reads.drop(pending.number);
  }

  get failed(): { readonly proposalsFailed: number; readonly asksFailed: number } {
    return { proposalsFailed: this.#proposalsFailed, asksFailed: this.#asksFailed };
  }

  /** Number of requests that wait to be sent, or for a leader. */
  get waiting(): number {
    return this.#waiting.size + this.#held.size + this.#forwarding.size + this.#reads.size;
  }

  /** Sends what is queued to the leader, if there is one. Reads that wait together share one request. */
  dispatch(): void {
    if (!this.#context.knowsLeader) return;
    this.#catchUp();
    this.#hasCleared = false;
    this.#forwarding.settled = this.requests.oldestCommand ?? 0;
    for (const pending of this.#forwarding.take()) this.#forward(pending, pending.command!);
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    const readers: PendingRequest[] = [];
    for (const pending of waiting) {
      const { kind, request } = pending.request;
      if (pending.isUnclear) readers.push(pending);
      else if (pending.command !== undefined) this.#propose(pending, pending.command);
      else if (kind === "leaseKeepAlive") this.#ask("refresh", request.ID, [pending], pending.dueMs);
      else if (kind === "leaseTimeToLive") this.#ask("remaining", request.ID, [pending], pending.dueMs);
      else readers.push(pending);
    }
    if (readers.length === 0) return;
    const deadlineMs = readers.reduce((latestMs, { dueMs }) => Math.max(latestMs, dueMs), 0);
    this.#ask("read", 0n, readers, deadlineMs);
  }

  /** Requests a read index in advance, so that the first clients of this server need not wait for it. */
  #catchUp(): void {
    if (this.#callers.hasCaughtUp || this.#own !== "none") return;
    const { electionMs, nowMs } = this.#context;
    this.#own = "asked";
    this.#ask("read", 0n, [], nowMs + electionMs);
  }

  #propose(pending: PendingRequest, command: Uint8Array): void {
    const { leads, leadership, raft } = this.#context;
    pending.term = leadership.term;
    pending.connection = -1;
    if (!leads || isMembershipRequest(pending.request)) {
      this.#forward(pending, command);
      return;
    }
    const proposed = raft.propose([command]);
    if (!proposed.accepted) {
      if (proposed.reason === "overloaded") this.#fail(pending, "tooManyRequests");
      else this.#held.set(pending.number, pending);
      return;
    }
    pending.term = proposed.term;
    pending.stage = "proposed";
    this.#proposed.set(pending.number, pending);
  }

  /** A leader's answer to itself may arrive before `send` returns. */
  #forward(pending: PendingRequest, command: Uint8Array): void {
    pending.stage = "proposed";
    this.#proposed.set(pending.number, pending);
    const kind = isMembershipRequest(pending.request) ? "propose-change" : "propose";
    this.#forwarding.send(kind, pending, command);
    this.#unpropose(pending);
  }

  /** Undoes the proposal, if nothing of it was sent in this term. */
  #unpropose(pending: PendingRequest): void {
    if (pending.connection !== -1) return;
    pending.stage = "waiting";
    this.#proposed.delete(pending.number);
  }

  /** The connection to the leader did not accept this message. */
  notSent(message: Propose | ProposeChange | Ask): void {
    if (message.kind === "ask") {
      this.refused({ ...message, kind: "leader-refusal", term: 0, failure: "leaderChanged" });
      return;
    }
    const { again, number, term } = message;
    const pending = this.#proposed.get(number);
    if (pending === undefined || pending.term !== term) return;
    this.#forwarding.notSent(pending, again);
    this.#unpropose(pending);
  }

  /** The connection to a member accepts messages again. */
  drained(member: MemberId): void {
    this.#forwarding.drained(member);
  }

  /** There is a new connection; messages sent on the previous one may be lost. */
  connected(member: MemberId, takesRepeats: boolean): void {
    this.#forwarding.connected(member, takesRepeats);
    if (member !== this.#context.leadership.leader) return;
    this.#forwarding.repeatLost(this.#proposed.values());
    this.#askAllAgain();
  }

  #ask(about: Ask["about"], lease: bigint, requests: readonly PendingRequest[], deadlineMs: number): void {
    const { id, leadership, nowMs } = this.#context;
    this.#number += 1;
    const number = this.#number;
    for (const pending of requests) pending.stage = "asked";
    this.#asking.set(number, { about, requests, askedMs: nowMs });
    const leftMs = deadlineMs - nowMs;
    this.#context.send({ kind: "ask", from: id, to: leadership.leader, number, about, lease, leftMs });
  }

  // Answers

  answered(answer: LeaderAnswer): void {
    const asking = this.#asking.get(answer.number);
    if (asking === undefined) return;
    this.#asking.delete(answer.number);
    const { about, requests } = asking;
    if (about !== "refresh") {
      this.#callers.newAfter(answer.index);
      this.#answered.push({ answer, requests });
      return;
    }
    for (const pending of requests)
      this.requests.answer(pending, refreshAnswer(this.#context, pending.request, answer));
  }

  refused({ number, term, failure }: LeaderRefusal): void {
    const proposed = this.#proposed.get(number);
    // A refusal from an earlier term: the request has been proposed again meanwhile.
    if (proposed !== undefined && proposed.term !== term) return;
    const asking = this.#asking.get(number);
    this.#proposed.delete(number);
    this.#asking.delete(number);
    if (asking?.requests.length === 0) this.#own = "held";
    if (proposed !== undefined) this.#forwarding.drop(number);
    for (const pending of proposed === undefined ? (asking?.requests ?? []) : [proposed]) {
      if (failure === "leaderChanged") {
        if (pending === proposed) this.#renumber(pending);
        lookAgain(pending);
        this.#wait(pending, this.#held);
      } else this.#fail(pending, failure);
    }
  }

  /** The leader has seen the old number, and would repeat its answer. */
  #renumber(pending: PendingRequest): void {
    this.#number += 1;
    pending.number = this.#number;
    pending.command = renumbered(pending.command!, pending.number);
  }

  isAwaited({ proposer, request }: Command): boolean {
    return proposer === this.#context.id && this.#proposed.get(Number(request))?.isOpen === true;
  }

  /** A command of the log has been applied. */
  applied(command: Command, { answer, revision }: Applied): void {
    if (command.proposer !== this.#context.id) return;
    const number = Number(command.request);
    const pending = this.#proposed.get(number);
    if (pending === undefined) return;
    this.#proposed.delete(number);
    this.#forwarding.drop(number);
    if (answer === undefined || answer instanceof CoreError) {
      this.requests.answer(pending, answer ?? new CoreError("timeout"));
      return;
    }
    // As in etcd, member lists have no revision.
    answer.header = this.#context.header(isMembershipRequest(pending.request) ? 0 : revision);
    this.requests.answer(pending, answer);
  }

  /**
   * An entry of this term is about to be applied: proposals of earlier terms that have not been applied by
   * now never will be.
   */
  reached(term: number): void {
    if (term <= this.#reachedTerm) return;
    this.#reachedTerm = term;
    for (const [number, pending] of this.#proposed.entries()) {
      if (pending.term >= term) continue;
      this.#proposed.delete(number);
      this.#forwarding.drop(number);
      lookAgain(pending);
      this.#wait(pending, this.#waiting);
    }
  }

  /**
   * A snapshot covers entries that this server has not seen: whether they include a pending command can no
   * longer be learnt.
   */
  skipped(): void {
    for (const pending of this.#proposed.values()) this.#fail(pending, "timeout");
    this.#proposed.clear();
  }

  /** Answers reads for which the state is new enough. */
  release(): void {
    const { appliedIndex } = this.#context;
    if (!this.#answered.some(({ answer }) => answer.index <= appliedIndex)) return;
    const answered = this.#answered;
    this.#answered = answered.filter((each) => each.answer.index > appliedIndex);
    for (const each of answered) {
      if (each.answer.index > appliedIndex) continue;
      this.#callers.caughtUp();
      for (const pending of each.requests) this.#begin(pending, each.answer);
    }
  }

  /** Continues reads in progress, a bounded amount of work. */
  turn(): void {
    const { limits, state } = this.#context;
    this.#reads.turn(limits.unitsPerTurn, state.revisions.visits);
  }

  get isReading(): boolean {
    return this.#reads.isThere || (this.#hasCleared && this.#context.knowsLeader);
  }

  #begin(pending: PendingRequest, answer: LeaderAnswer | undefined): void {
    pending.stage = "asked";
    if (pending.isOpen && pending.isUnclear) this.#clear(pending);
    else if (pending.isOpen) {
      this.requests.begun(pending);
      this.#reads.add(pending.number, this.#reading(pending, answer));
    }
  }

  // Time, and leaders

  /** The leader has changed or is gone: requests are sent again. */
  leadershipChanged(): void {
    for (const pending of this.#forwarding.leadershipChanged()) this.#wait(pending, this.#waiting);
    this.#forwarding.repeatLost(this.#proposed.values());
    for (const pending of this.#waiting.values()) lookAgain(pending);
    this.#askAllAgain();
    this.#retryHeld();
  }

  tick(): void {
    const { electionMs, nowMs } = this.#context;
    this.#retryHeld();
    for (const [number, asking] of this.#asking.entries()) {
      if (asking.askedMs + electionMs > nowMs) break;
      this.#asking.delete(number);
      this.#askAgain(asking);
    }
    for (let due = this.requests.popDue(nowMs); due !== undefined; due = this.requests.popDue(nowMs))
      this.#fail(due, this.#failureInTime(due));
  }

  /**
   * The failure by which a client knows whether it may repeat the request: only if it was certainly not
   * proposed.
   */
  #failureInTime({ stage }: PendingRequest): "timeout" | "noLeader" | "leaderChanged" {
    if (stage !== "waiting") return "timeout";
    return this.#context.knowsLeader ? "leaderChanged" : "noLeader";
  }

  #askAllAgain(): void {
    for (const asking of this.#asking.values()) this.#askAgain(asking);
    this.#asking.clear();
  }

  #askAgain({ requests }: Asking): void {
    if (requests.length === 0) this.#own = "none";
    for (const pending of requests) this.#wait(pending, this.#waiting);
  }

  #retryHeld(): void {
    if (this.#own === "held") this.#own = "none";
    for (const pending of this.#held.values()) this.#waiting.set(pending.number, pending);
    this.#held.clear();
  }

  #wait(pending: PendingRequest, queue: NumberMap<PendingRequest>): void {
    if (!pending.isOpen) return;
    pending.stage = "waiting";
    queue.set(pending.number, pending);
  }

  #fail(pending: PendingRequest, failure: ConstructorParameters<typeof CoreError>[0]): void {
    if (pending.command === undefined && !pending.isUnclear) this.#asksFailed += 1;
    else this.#proposalsFailed += 1;
    this.requests.answer(pending, new CoreError(failure));
  }

  // Reads

  *#reading(pending: PendingRequest, answer: LeaderAnswer | undefined): Steps<void> {
    const { credentials, request } = pending;
    const check = () => this.#callers.checkRead(request, credentials);
    try {
      this.requests.answer(pending, yield* answerRead(this.#context, this.#members, request, answer, check));
    } catch (error) {
      this.requests.answer(pending, refusalFor(error));
    }
  }
}
