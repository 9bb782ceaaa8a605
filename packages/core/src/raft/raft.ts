import type { BothClocks } from "leasehold/common";
import type { Accepted, Proposed, RaftOptions, Refused, ReplicatedLog, Status } from "./api.js";
import { acceptedUpTo, rejectedAt } from "./append-answers.js";
import { corrupt } from "./corrupt.js";
import { Election } from "./election.js";
import { ElectionTimer } from "./election-timer.js";
import { Leader, refused } from "./leader.js";
import { LeaderClaims } from "./leader-claims.js";
import { RaftLog } from "./log.js";
import { type RaftSettings, settingsOf } from "./options.js";
import { Outbox } from "./outbox.js";
import { nobody } from "./types.js";
import type {
  AppendRequest,
  ConfigChange,
  FromLeader,
  InstallSnapshot,
  MemberId,
  Membership,
  Message,
  PreVoteAnswer,
  PreVoteRequest,
  Ready,
  Role,
  SnapshotMeta,
  VoteAnswer,
  VoteRequest,
} from "./types.js";
import { isWellFormed } from "./well-formed.js";

/**
 * One server's part in the replicated log: Raft (Ongaro and Ousterhout 2014) with the additions of Ongaro's
 * thesis, modelled on etcd's library. `api.ts` describes its use.
 *
 * Two rules go beyond figure 2. First, a server that hears a leader answers no vote requests, and a leader
 * that hears no majority steps down (thesis 4.2.3, 6.2). Second, no server begins a new term unless a
 * majority would vote for it (pre-vote, 9.6). So a server that was cut off or removed cannot depose a working
 * leader.
 */
export class Raft implements ReplicatedLog {
  readonly #id: MemberId;
  readonly #settings: RaftSettings;
  readonly #log: RaftLog;

  // Figure 2, persistent state; the rest of it is the log.
  #term: number;
  #votedFor: MemberId;

  #role: Role = "follower";
  #leaderId: MemberId = nobody;
  /** Set while leading. */
  #leading: Leader | undefined;
  /** Set while a candidate or pre-candidate. */
  #election: Election | undefined;
  /** The write that makes a candidate's own vote durable: the vote counts once it is on disk. */
  #ownVoteSequence = 0;
  readonly #timer: ElectionTimer;
  readonly #claims = new LeaderClaims();
  #applied: number;
  readonly #outbox: Outbox;
  #dropped = 0;

  /** @throws LeaseholdError `INVALID_CONFIG`; `LOG_CORRUPT` for inconsistent recovered state */
  constructor(options: RaftOptions) {
    const { hardState, snapshot, entries } = options.recovered;
    this.#id = options.id;
    this.#settings = settingsOf(options);
    this.#timer = new ElectionTimer(this.#settings, options.random, options.recovered);
    this.#log = new RaftLog(snapshot, entries, hardState.commit);
    if (this.#log.lastTerm > hardState.term)
      throw corrupt(`the log has term ${this.#log.lastTerm}, but only ${hardState.term} was ever seen`);
    this.#term = hardState.term;
    this.#votedFor = hardState.votedFor;
    this.#applied = snapshot.index;
    this.#outbox = new Outbox(hardState, this.#leadership);
  }

  // Requests

  propose(data: readonly Uint8Array[]): Proposed {
    return this.#leading?.propose(data) ?? refused("not-leader");
  }

  proposeChange(change: ConfigChange, data: Uint8Array): Proposed {
    return this.#leading?.proposeChange(change, data) ?? refused("not-leader");
  }

  readIndex(id: number): Accepted | Refused {
    return this.#leading?.readIndex(id) ?? refused("not-leader");
  }

  readIndexOfAsker(asker: MemberId): number | undefined {
    return this.#leading?.readIndexOfAsker(asker);
  }

  readIndexByClock(): number | undefined {
    return this.#leading?.readIndexByClock();
  }

  transferLeader(to: MemberId): Accepted | Refused {
    return this.#leading?.transfer(to) ?? refused("not-leader");
  }

  reportUnreachable(member: MemberId): void {
    this.#leading?.reportUnreachable(member);
  }

  reportArriving(member: MemberId): void {
    if (this.#leading === undefined && member === this.#leaderId) this.#timer.hears();
  }

  reportSnapshot(member: MemberId, arrived: boolean): void {
    this.#leading?.reportSnapshot(member, arrived);
  }

  // Completions by the host

  persisted(sequence: number): void {
    this.#log.wrote(sequence);
    if (this.#role === "candidate" && sequence >= this.#ownVoteSequence) this.#countVote(this.#id, true);
    this.#leading?.countCommit();
  }

  applied(index: number): void {
    if (index > this.#log.handedOut)
      throw new RangeError(`applied ${index}, but only ${this.#log.handedOut} was handed out`);
    this.#applied = Math.max(this.#applied, index);
  }

  snapshotMeta(index: number): SnapshotMeta {
    return this.#log.snapshotMeta(index, this.#applied);
  }

  compact(snapshot: SnapshotMeta, keepEntries: number, keepBytes = Infinity): void {
    if (snapshot.index <= this.#log.snapshot.index) return;
    if (snapshot.index > this.#applied)
      throw new RangeError(`a snapshot at ${snapshot.index}, but only ${this.#applied} is applied`);
    this.#log.snapshot = snapshot;
    this.#log.compact(snapshot.index, keepEntries, keepBytes);
  }

  // Time

  setTime(now: BothClocks): void {
    this.#timer.setTime(now);
  }

  tick(): void {
    if (this.#leading !== undefined) {
      if (!this.#leading.tick()) this.#follow(this.#term, nobody);
      return;
    }
    if (!this.#timer.tick()) return;
    this.#timer.restart();
    this.#leaderId = nobody;
    if (this.#mayStand) this.#stand("pre-candidate");
  }

  // Messages

  step(message: Message): void {
    const { from, to, term } = message;
    const isForMe = to === this.#id && from !== this.#id && from !== nobody;
    if (!isForMe || !isWellFormed(message)) {
      this.#dropped += 1;
      return;
    }
    if (term > this.#term && !this.#meetLaterTerm(message)) return;
    if (term < this.#term) this.#answerEarlierTerm(message);
    else this.#receive(message);
  }

  /**
   * "If RPC request or response contains term T > currentTerm: set currentTerm = T, convert to follower"
   * (figure 2).
   */
  #meetLaterTerm(message: Message): boolean {
    switch (message.kind) {
      case "pre-vote":
      case "vote":
        // "If a server receives a RequestVote request within the minimum election timeout of hearing from a
        // current leader, it does not update its term or grant its vote" (thesis 4.2.3).
        if (this.#holdsAgainst(message)) return false;
        if (message.kind === "vote") this.#follow(message.term, nobody);
        return true;
      case "pre-vote-answer":
        // A granted pre-vote names a term that no server has begun yet.
        if (!message.granted) this.#follow(message.term, nobody);
        return true;
      default:
        this.#follow(message.term, nobody);
        return true;
    }
  }

  #holdsAgainst(request: PreVoteRequest | VoteRequest): boolean {
    const isTransfer = request.kind === "vote" && request.transfer > 0;
    return isTransfer ? this.#timer.forbids(request.term, request.transfer) : this.#hearsLeader;
  }

  get #hearsLeader(): boolean {
    if (this.#leading !== undefined || this.#timer.isHeld) return true;
    return this.#leaderId !== nobody && this.#timer.isRecent;
  }

  /**
   * Informs a server of an earlier term of the later one, including a leader that this server no longer
   * follows.
   */
  #answerEarlierTerm(message: Message): void {
    const { from: to } = message;
    switch (message.kind) {
      case "pre-vote":
      case "vote":
        this.#answer(to, `${message.kind}-answer`, false);
        return;
      case "append":
      case "heartbeat":
      case "snapshot":
        this.#sendAfterWrite({ kind: "heartbeat-answer", ...this.#head(to), round: 0, holdMs: 0 });
        return;
      default:
    }
  }

  #receive(message: Message): void {
    switch (message.kind) {
      case "pre-vote":
      case "vote":
        this.#answerVote(message);
        return;
      case "pre-vote-answer":
      case "vote-answer":
        this.#receiveVote(message);
        return;
      case "append":
      case "commit":
      case "heartbeat":
      case "snapshot":
        this.#followLeader(message);
        return;
      case "timeout-now":
        // Otherwise any server could use it to depose the leader, past all promises.
        if (message.from !== this.#leaderId) return;
        // The message may arrive after the leader has announced the end of this transfer.
        if (this.#timer.forbids(this.#term + 1, message.transfer)) return;
        if (this.#mayStand) this.#stand("candidate", message.transfer);
        return;
      case "append-answer":
      case "heartbeat-answer":
      case "snapshot-answer":
        if (this.#leading?.receive(message) === false) this.#dropped += 1;
    }
  }

  // Elections

  get #mayStand(): boolean {
    return this.#log.memberships.mayStand(this.#id, this.#log.commit);
  }

  /** No leader is known: requests pre-votes (thesis 9.6), or votes. */
  #stand(role: "pre-candidate" | "candidate", transfer = 0): void {
    this.#role = role;
    this.#leaderId = nobody;
    this.#election = new Election();
    if (role === "candidate") {
      this.#term += 1;
      this.#claims.termBegins();
      this.#votedFor = this.#id;
      this.#ownVoteSequence = this.#outbox.nextSequence;
    }
    this.#timer.restart();
    const { lastIndex, lastTerm } = this.#log;
    for (const to of this.#log.memberships.current.voters) {
      if (to === this.#id) continue;
      const head = { ...this.#head(to), lastIndex, lastTerm };
      if (role === "candidate") this.#sendAfterWrite({ kind: "vote", ...head, transfer });
      else this.#sendAfterWrite({ kind: "pre-vote", ...head, term: this.#term + 1 });
    }
    if (role === "pre-candidate") this.#countVote(this.#id, true);
  }

  /**
   * "Each server will vote for at most one candidate in a given term, on a first-come-first-served basis"
   * (5.2).
   */
  #answerVote(request: PreVoteRequest | VoteRequest): void {
    const { kind, from, term, lastIndex, lastTerm } = request;
    const isFree = kind === "pre-vote" ? term > this.#term : this.#mayVote(request);
    const granted = isFree && this.#log.isUpToDate(lastIndex, lastTerm);
    if (granted && kind === "vote") {
      this.#votedFor = from;
      this.#timer.votes();
    }
    // A granted pre-vote names the term it is for; a refusal names this server's term.
    if (granted) this.#answer(from, `${kind}-answer`, true, term);
    else this.#answer(from, `${kind}-answer`, false);
  }

  /**
   * Another message may have brought the term before the request: the promise to the leader binds even then.
   */
  #mayVote({ from, term, transfer }: VoteRequest): boolean {
    if (this.#votedFor === from) return true;
    if (this.#timer.forbids(term, transfer)) return false;
    return this.#votedFor === nobody && this.#leaderId === nobody;
  }

  #answer(to: MemberId, kind: "pre-vote-answer" | "vote-answer", granted: boolean, term = this.#term): void {
    this.#sendAfterWrite({ kind, from: this.#id, to, term, granted });
  }

  #receiveVote({ kind, from, term, granted }: PreVoteAnswer | VoteAnswer): void {
    const isPre = kind === "pre-vote-answer";
    if (this.#role !== (isPre ? "pre-candidate" : "candidate")) return;
    if (granted && term !== this.#term + (isPre ? 1 : 0)) return;
    this.#countVote(from, granted);
  }

  #countVote(voter: MemberId, granted: boolean): void {
    const election = this.#election!;
    election.count(voter, granted);
    const outcome = election.outcome(this.#log.memberships.current.voters);
    if (outcome === "lost") this.#follow(this.#term, nobody);
    else if (outcome === "won" && this.#role === "pre-candidate") this.#stand("candidate");
    else if (outcome === "won") this.#lead();
  }

  #lead(): void {
    this.#role = "leader";
    this.#leaderId = this.#id;
    this.#election = undefined;
    this.#leading = new Leader({
      id: this.#id,
      term: this.#term,
      log: this.#log,
      settings: this.#settings,
      now: () => this.#timer.now,
      send: (message) => this.#outbox.early.push(message),
      notify: (notice) => this.#outbox.notices.push(notice),
      answerRead: (read) => this.#outbox.reads.push(read),
    });
  }

  #follow(term: number, leader: MemberId): void {
    if (term > this.#term) {
      this.#term = term;
      this.#claims.termBegins();
      this.#votedFor = nobody;
    }
    this.#role = "follower";
    this.#leaderId = leader;
    this.#leading = undefined;
    this.#election = undefined;
    this.#timer.restart();
  }

  // Messages of a leader

  #followLeader(message: FromLeader): void {
    const { from, term } = message;
    const objections = this.#claims.objectionsTo(message, this.#leaderId, this.#log.commit);
    for (const objection of objections) this.#outbox.objections.push(objection);
    if (objections.length > 0) return;
    if (this.#leaderId === nobody) this.#follow(term, from);
    this.#timer.heardLeader(term, message.kind === "heartbeat" ? message.transfersOver : 0);
    if (message.kind === "append") this.#accept(message);
    else if (message.kind === "snapshot") this.#restore(message);
    else if (message.kind === "commit") this.#log.commitIfThere(message.index, message.indexTerm);
    else {
      this.#log.commitTo(message.commit);
      const { holdMs } = this.#settings;
      this.#sendAfterWrite({ kind: "heartbeat-answer", ...this.#head(from), round: message.round, holdMs });
    }
  }

  #accept({ from, previousIndex, previousTerm, entries, commit }: AppendRequest): void {
    this.#log.assertAgrees(previousIndex, previousTerm);
    for (const { index, term } of entries) this.#log.assertAgrees(index, term);
    // A late message, or a new leader's first guess: committed entries are known to agree, and may have been
    // dropped.
    const { commit: known } = this.#log;
    const late = known - previousIndex;
    if (late > 0 && late >= entries.length) {
      this.#acknowledge(from, known);
      return;
    }
    const agreed =
      late > 0
        ? this.#log.accept(known, entries[late - 1]!.term, entries.slice(late))
        : this.#log.accept(previousIndex, previousTerm, entries);
    if (agreed === undefined) {
      const hint = this.#log.lastNotAfterTerm(previousIndex, previousTerm);
      this.#sendAfterWrite(rejectedAt(previousIndex, hint, this.#head(from)));
      return;
    }
    this.#log.commitTo(Math.min(commit, agreed));
    this.#acknowledge(from, agreed);
  }

  #acknowledge(to: MemberId, index: number): void {
    this.#claims.acknowledges(index);
    this.#sendAfterWrite(acceptedUpTo(index, this.#head(to)));
  }

  /**
   * Raft 7, figure 13. If the log already contains the snapshot's last entry, the only news is that
   * everything up to it is committed.
   */
  #restore({ from, meta }: InstallSnapshot): void {
    if (this.#log.termAt(meta.index) === meta.term) this.#log.commitTo(meta.index);
    else if (meta.index > this.#log.commit) {
      this.#log.restore(meta);
      this.#outbox.snapshot = meta;
    }
    const { commit: index } = this.#log;
    this.#claims.acknowledges(index);
    this.#sendAfterWrite({ kind: "snapshot-answer", ...this.#head(from), rejected: false, index });
  }

  #head(to: MemberId): { from: MemberId; to: MemberId; term: number } {
    return { from: this.#id, to, term: this.#term };
  }

  /**
   * Sends when all pending writes of this server are on disk. A leader sends concurrently with its write
   * (`#lead`).
   */
  #sendAfterWrite(message: Message): void {
    this.#outbox.messages.push(message);
  }

  ready(): Ready | undefined {
    this.#leading?.flush();
    if (this.#leading?.isRemoved === true) this.#follow(this.#term, nobody);
    const { committedEntriesMax } = this.#settings.limits;
    const state = { term: this.#term, votedFor: this.#votedFor, promisedMs: this.#timer.promisedMs };
    return this.#outbox.take(this.#log, state, this.#leadership, committedEntriesMax);
  }

  get #leadership(): NonNullable<Ready["leadership"]> {
    return { role: this.#role, leader: this.#leaderId, term: this.#term };
  }

  get membership(): Membership {
    return this.#log.memberships.current;
  }

  status(): Status {
    const { commit, lastIndex, persisted, snapshot } = this.#log;
    return {
      ...this.#leadership,
      id: this.#id,
      commit,
      applied: this.#applied,
      lastIndex,
      persistedIndex: persisted,
      snapshotIndex: snapshot.index,
      membership: this.membership,
      transferTo: this.#leading?.transferTo ?? nobody,
      followers: this.#leading?.followers() ?? [],
      droppedMessages: this.#dropped,
    };
  }
}
