import { type BothClocks, clockRateErrorDefault, LeaseholdError } from "leasehold/common";
import type { CopyMessage } from "../copies/copies.js";
import { CorruptionCheck } from "../copies/corruption-check.js";
import { Raft } from "../raft/raft.js";
import type { MemberId, Ready } from "../raft/types.js";
import type { Rights } from "../state/auth-state.js";
import type { CoreState } from "../state/state.js";
import type { Visits } from "../state/steps.js";
import type { ServerLogic, ReplicaStatus } from "./api.js";
import { type AppliedEntry, Applier } from "./applier.js";
import { ClientRequests } from "./client-requests.js";
import { Callers } from "./callers.js";
import { Context } from "./context.js";
import { ReadIndexQueue } from "./read-index-queue.js";
import { LeaseKeeping } from "./lease-keeping.js";
import {
  clusterTimeMsDefault,
  defaultLimits,
  electionTicksDefault,
  holdShare,
  type ReplicaOptions,
} from "./options.js";
import { Forwarded } from "./proposals/forwarded.js";
import {
  failureOf,
  isProposedBySender,
  type LeaderMessage,
  type LeaderRefusal,
  type Propose,
  type ProposeChange,
} from "./proposals/leader-messages.js";
import { isMember } from "../raft/membership.js";
import { MembershipKeeping } from "./membership.js";
import { SnapshotSchedule } from "./snapshot-schedule.js";
import { SpaceKeeping } from "./space-keeping.js";
import type { Effects, Input, PeerMessage } from "./types.js";
import { WatchHub } from "./watch-hub.js";

/** Messages that are accepted only from members. */
const ofMembers: ReadonlySet<PeerMessage["kind"]> = new Set([
  "propose",
  "propose-change",
  "ask",
  "copy-question",
  "copy-answer",
  "leader-answer",
  "leader-refusal",
] as const satisfies (LeaderMessage | CopyMessage)["kind"][]);

/**
 * The logic of one server of the core: the replicated log, the state it produces, and the pending requests.
 * `api.ts` describes its use.
 */
export class Replica implements ServerLogic {
  readonly #context: Context;
  readonly #clients: ClientRequests;
  readonly #readIndex: ReadIndexQueue;
  readonly #leases: LeaseKeeping;
  readonly #watches: WatchHub;
  readonly #snapshots: SnapshotSchedule;
  readonly #space: SpaceKeeping;
  readonly #members: MembershipKeeping;
  readonly #callers: Callers;
  readonly #check: CorruptionCheck;
  /** The rights against which watches were last checked. */
  #rights: Rights;
  readonly #applier: Applier;
  readonly #forwarded = new Forwarded();
  #outgoing: (LeaderMessage | CopyMessage)[] = [];
  #objections: string[] = [];
  /** Received snapshots, by index. The log decides which one it accepts. */
  readonly #offered = new Map<number, CoreState>();

  /** @throws LeaseholdError `INVALID_CONFIG`; `LOG_CORRUPT` for inconsistent recovered state */
  constructor(options: ReplicaOptions) {
    const { id, cluster, state, random, recovered, tickMs, raftLimits } = options;
    const { electionTicks = electionTicksDefault, clusterTimeMs = clusterTimeMsDefault } = options;
    const limits = { ...defaultLimits, ...options.limits };
    const electionMs = electionTicks * tickMs;
    const { clockRateError = clockRateErrorDefault, holdMs = electionMs * holdShare } = options;
    const clocks = { holdMs, clockRateError };
    const raft = new Raft({ id, recovered, random, electionTicks, ...clocks, limits: raftLimits ?? {} });
    const send = (message: LeaderMessage | CopyMessage) => this.#send(message);
    this.#context = new Context({ id, cluster, raft, state, limits, random, electionMs, send });
    const { founding = [], newestVersion: newest, self } = options;
    this.#members = new MembershipKeeping(this.#context, founding, self, electionTicks, recovered, newest);
    this.#callers = new Callers(this.#context);
    this.#rights = state.auth.rights;
    this.#clients = new ClientRequests(this.#context, this.#members, this.#callers);
    this.#leases = new LeaseKeeping(this.#context, clusterTimeMs);
    this.#space = new SpaceKeeping(this.#context, options.autoCompaction, options.quotaBytes ?? Infinity);
    this.#readIndex = new ReadIndexQueue(this.#context, this.#leases, this.#clients.isOpen);
    this.#watches = new WatchHub(this.#context, this.#callers);
    this.#snapshots = new SnapshotSchedule(this.#context);
    this.#check = new CorruptionCheck(this.#context, options.checksum, options.corruptCheckMs ?? 0);
    this.#applier = new Applier(this.#context, {
      isAwaited: (command) => this.#clients.isAwaited(command),
      reached: (term) => this.#clients.reached(term),
      applied: (entry) => this.#applied(entry),
    });
  }

  step(input: Input, now: BothClocks): void {
    this.#context.nowMs = Math.max(this.#context.nowMs, now.monotonicMs);
    const { nowMs, raft } = this.#context;
    raft.setTime({ monotonicMs: nowMs, wallMs: now.wallMs });
    switch (input.kind) {
      case "tick":
        this.#tick();
        return;
      case "request":
        this.#clients.request(input);
        return;
      case "cancel":
        this.#clients.cancel(input.id);
        return;
      case "message":
        this.#receive(input.message);
        return;
      case "snapshot-received":
        this.#offered.set(input.message.meta.index, input.state);
        raft.step(input.message);
        return;
      case "snapshot-sent":
        raft.reportSnapshot(input.member, input.arrived);
        return;
      case "unreachable":
        raft.reportUnreachable(input.member);
        return;
      case "connected":
        this.#connected(input.member, input.takesRepeats);
        return;
      case "drained":
        this.#clients.drained(input.member);
        return;
      case "not-sent":
        this.#notSent(input.message);
        return;
      case "arriving":
        raft.reportArriving(input.member);
        return;
      case "persisted":
        raft.persisted(input.sequence);
        return;
      case "take-snapshot":
        this.#snapshots.demand();
        return;
      case "compare-copies":
        this.#check.demand();
        return;
      case "snapshot-written":
        this.#snapshots.written(input.meta);
        return;
      case "snapshot-failed":
        this.#snapshots.failed();
        return;
      case "watch":
        this.#watches.request(input);
        return;
      case "watch-sent":
        this.#watches.sent(input.stream, input.responses);
        return;
      case "watch-closed":
        this.#watches.closed(input.stream);
        return;
      case "peer-version":
        this.#members.speaks(input.member, input.version);
        return;
      case "transfer":
        raft.transferLeader(input.to);
    }
  }

  /**
   * One turn: queued requests go to the log, committed entries are applied, applied requests are answered.
   * The order allows a request committed in this turn to be answered in it.
   */
  take(): Effects | undefined {
    this.#clients.dispatch();
    this.#readIndex.flush();
    const ready = this.#context.raft.ready();
    if (ready !== undefined) this.#takeIn(ready);
    this.#offered.clear();
    this.#applier.turn();
    this.#leases.turn();
    this.#readIndex.release();
    this.#clients.release();
    this.#clients.turn();
    this.#check.turn();
    const watches = this.#watches.take();
    const answers = this.#clients.requests.takeAnswers();
    const [asked, objections] = [this.#outgoing, this.#objections];
    this.#outgoing = [];
    this.#objections = [];
    const snapshot = this.#applier.isApplying ? undefined : this.#snapshots.take();
    const roll = this.#members.takeRoll();
    const compared = this.#check.takeComparison();
    const isNothing =
      watches.length + answers.length + asked.length + objections.length === 0 &&
      [snapshot, roll, compared].every((each) => each === undefined);
    if (ready === undefined && isNothing && !this.#hasMore) return undefined;
    return {
      persist: ready?.persist,
      early: [...(ready?.early ?? []), ...asked],
      notices: ready?.notices ?? [],
      messages: ready?.messages ?? [],
      answers,
      watches,
      snapshot,
      leadership: ready?.leadership,
      roll,
      objections: [...objections, ...(ready?.objections ?? [])],
      compared,
    };
  }

  /** There is work left for another turn. */
  get #hasMore(): boolean {
    const { isBeginning } = this.#leases.tracker;
    const isReading = this.#clients.isReading || this.#watches.isReading || this.#check.isBusy;
    return this.#applier.isBusy || isBeginning || isReading;
  }

  /** Counts all visits to the state; for tests of the length of turns. */
  get visits(): Visits {
    return this.#context.state.revisions.visits;
  }

  /** Whether a command is partly applied; for comparisons of states. */
  get isApplying(): boolean {
    return this.#applier.isApplying;
  }

  /** Whether this server leads by its clock; for tests. */
  get leadsByClock(): boolean {
    return this.#context.raft.readIndexByClock() !== undefined;
  }

  /** Number of requests kept without a waiting client. */
  get requestsLeftBehind(): number {
    return Math.max(0, this.#clients.waiting - this.#clients.requests.size);
  }

  userOf(token: string): string | undefined {
    return this.#callers.userOf(token);
  }

  status(): ReplicaStatus {
    const { cluster, raft, state } = this.#context;
    return {
      ...raft.status(),
      cluster: state.cluster === 0n ? 0n : cluster,
      version: state.version,
      revision: state.revisions.current,
      hasCaughtUp: this.#callers.hasCaughtUp,
      compacted: state.revisions.compacted,
      keys: state.revisions.live,
      puts: state.revisions.puts,
      deletions: state.revisions.deletions,
      leases: state.leases.size,
      bytes: state.bytes,
      spaceAlarms: [...state.spaceAlarms],
      corruptAlarms: [...state.corruptAlarms],
      requests: this.#clients.requests.size,
      ...this.#clients.failed,
      slowApplies: this.#applier.slow,
      watches: this.#watches.count,
      watchesBehind: this.#watches.behind,
    };
  }

  #tick(): void {
    this.#context.raft.tick();
    this.#clients.tick();
    this.#leases.tick();
    if (this.#leases.isTracking) {
      this.#space.tick();
      this.#members.promote();
      this.#members.raise();
    }
    this.#watches.tick();
    this.#callers.tick();
    this.#members.tick();
    this.#check.tick(this.#leases.isTracking);
  }

  // Messages

  #send(message: LeaderMessage | CopyMessage): void {
    if (message.kind === "leader-refusal") this.#forwarded.refused(message);
    if (message.to === this.#context.id) this.#receive(message);
    else this.#outgoing.push(message);
  }

  /**
   * Whether the message is accepted. Raft judges its own messages. Others are accepted from members, and from
   * a leader that this server's log may not know yet.
   */
  #isTaken({ from, kind }: PeerMessage): boolean {
    const { id, leadership, raft } = this.#context;
    if (!ofMembers.has(kind) || from === id) return true;
    return from === leadership.leader || isMember(raft.membership, from);
  }

  #receive(message: PeerMessage): void {
    if (!this.#isTaken(message)) return;
    switch (message.kind) {
      case "propose":
      case "propose-change":
        if (message.from !== this.#context.id && !isProposedBySender(message))
          this.#objections.push(
            `${message.from.toString(16)} proposes in another server's name, or no command`,
          );
        else this.#takeProposal(message);
        return;
      case "ask":
        this.#readIndex.ask(message);
        return;
      case "copy-question":
        this.#check.asked(message);
        return;
      case "copy-answer":
        this.#check.answered(message);
        return;
      case "leader-answer":
        this.#clients.answered(message);
        return;
      case "leader-refusal":
        this.#clients.refused(message);
        return;
      default:
        this.#context.raft.step(message);
    }
  }

  /** Raft will probe the follower's log again; other messages will be requested again. */
  #notSent(message: PeerMessage): void {
    switch (message.kind) {
      case "append":
        this.#context.raft.reportUnreachable(message.to);
        return;
      case "propose":
      case "propose-change":
      case "ask":
        this.#clients.notSent(message);
        return;
      default:
    }
  }

  #connected(member: MemberId, takesRepeats: boolean): void {
    this.#clients.connected(member, takesRepeats);
    for (const { number, failure } of this.#forwarded.refusalsTo(member))
      this.#refuse(member, number, failure);
  }

  /** The sender may repeat a proposal that was accepted before, even by this server in an earlier term. */
  #takeProposal(message: Propose | ProposeChange): void {
    const { from, number } = message;
    const { leadership, leads } = this.#context;
    const isOfThisTerm = message.term === leadership.term && leads;
    if (message.again && !isOfThisTerm) return;
    const outcome = isOfThisTerm ? this.#forwarded.outcomeOf(message) : undefined;
    if (outcome === "taken") return;
    if (outcome !== undefined) this.#refuse(from, number, outcome);
    else if (message.kind === "propose") this.#proposeFor(message);
    else this.#members.proposeFor(message, this.#leases.isTracking);
  }

  #refuse(to: MemberId, number: number, failure: LeaderRefusal["failure"]): void {
    const { id: from, leadership } = this.#context;
    this.#send({ kind: "leader-refusal", from, to, number, term: leadership.term, failure });
  }

  /** Proposes for a follower's client. A refusal guarantees that nothing was proposed. */
  #proposeFor({ from, number, term, command }: Propose): void {
    const { id, leadership, raft } = this.#context;
    // A leader knows its term before it leads, and the entry would be appended in this term.
    const isOfThisTerm = term === leadership.term;
    const proposed = isOfThisTerm ? raft.propose([command]) : undefined;
    if (proposed?.accepted === true) return;
    const failure = failureOf(proposed?.reason ?? "not-leader");
    this.#send({ kind: "leader-refusal", from: id, to: from, number, term, failure });
  }

  // Entries of the log

  #takeIn({ persist, committed, reads, leadership }: Ready): void {
    if (leadership !== undefined) this.#leadershipChanged(leadership);
    if (persist?.snapshot !== undefined) this.#install(persist.snapshot.index);
    if (persist !== undefined) this.#members.appended(persist.entries);
    this.#applier.add(committed);
    for (const read of reads) this.#readIndex.confirmed(read);
  }

  /** Answers that a former leader owed are dropped; the asking server asks the next leader. */
  #leadershipChanged(leadership: NonNullable<Ready["leadership"]>): void {
    this.#context.leadership = leadership;
    this.#leases.end();
    this.#readIndex.reset();
    this.#forwarded.reset();
    this.#clients.leadershipChanged();
  }

  #install(index: number): void {
    const offered = this.#offered.get(index);
    if (offered === undefined)
      throw new LeaseholdError(
        "LOG_CORRUPT",
        `the log accepted a snapshot at ${index} whose content has not arrived`,
      );
    const { auth, revisions } = this.#context.state;
    const before = revisions.current;
    this.#applier.replaced();
    this.#context.state = offered;
    revisions.abandon();
    this.#context.appliedIndex = index;
    this.#context.raft.applied(index);
    this.#clients.skipped();
    this.#callers.replaced();
    this.#rights = offered.auth.rights;
    this.#watches.replaced(before, offered.auth.revision !== auth.revision);
    this.#snapshots.installed();
  }

  #applied({ entry, command, applied }: AppliedEntry): void {
    const { leadership } = this.#context;
    if (command !== undefined && applied !== undefined) {
      this.#leases.applied(applied);
      this.#callers.applied(entry.index, command, applied);
      const { body } = command;
      if (body.case === "userDelete" && applied.isDone) this.#watches.userDeleted(body.value.name);
      this.#watchesHearOfRights();
      if (applied.changes.length > 0) this.#watches.changed(applied.changes);
      this.#clients.applied(command, applied);
      this.#snapshots.applied(entry.data.length);
    }
    if (this.#leases.isTracking) return;
    const isOwn = leadership.role === "leader" && entry.term === leadership.term;
    if (isOwn) this.#beginLeading();
  }

  #watchesHearOfRights(): void {
    const { rights } = this.#context.state.auth;
    if (rights === this.#rights) return;
    this.#rights = rights;
    this.#watches.rightsChanged();
  }

  #beginLeading(): void {
    this.#leases.begin();
    this.#space.begin();
    this.#members.begin();
  }
}
