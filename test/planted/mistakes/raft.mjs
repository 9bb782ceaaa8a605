/** The known mistakes that can be made with a replicated log. */

const outbox = "packages/core/src/raft/outbox.ts";
const log = "packages/core/src/raft/log.ts";
const leader = "packages/core/src/raft/leader.ts";
const leaderLease = "packages/core/src/raft/leader-lease.ts";
const electionTimer = "packages/core/src/raft/election-timer.ts";
const raft = "packages/core/src/raft/raft.ts";

export const inRaft = /** @type {const} */ ([
  {
    name: "probesWithEntries",
    why: "At each answer to a heartbeat a follower is sent once more what is still on its way to it.",
    edits: [
      {
        file: "packages/core/src/raft/follower.ts",
        find: 'this.state === "probe" && this.#isProbeSent',
        replace: "(this.#isProbeSent = false)",
      },
    ],
  },
  {
    name: "lateAppendIsDropped",
    why: "Of entries that begin before what is committed a follower takes none.",
    edits: [{ file: raft, find: "late > 0 && late >= entries.length", replace: "late > 0" }],
  },
  {
    name: "voteNotPersisted",
    why: "Figure 2, persistent state: the vote is forgotten by a restart.",
    edits: [
      {
        file: outbox,
        find: "{ term, votedFor, commit: log.durableCommit, promisedMs }",
        replace: "{ term, votedFor: 0n, commit: log.durableCommit, promisedMs }",
      },
    ],
  },
  {
    name: "votesForOldLogs",
    why: "5.4.1: the first candidate gets the vote, also if its log is behind.",
    edits: [{ file: log, find: "lastTerm > this.lastTerm", replace: "true" }],
  },
  {
    name: "oldTermCommittedByCounting",
    why: "5.4.2, figure 8: an entry of an older term counts as committed once a majority has it.",
    edits: [{ file: leader, find: "replicated < this.#firstIndex", replace: "false" }],
  },
  {
    name: "previousTermUnchecked",
    why: "5.3: entries are appended without a look at the one before them.",
    edits: [{ file: log, find: "!meets", replace: "!meets && previousIndex > this.lastIndex" }],
  },
  {
    name: "committedTermUnchecked",
    why: "A follower takes its own entry for the committed one, of whatever term it is.",
    edits: [{ file: log, find: "this.termAt(index) === term", replace: "index <= this.lastIndex" }],
  },
  {
    name: "conflictsKept",
    why: "5.3: entries that disagree with the leader's stay.",
    edits: [{ file: log, find: "this.termAt(entry.index) === entry.term", replace: "true" }],
  },
  {
    name: "ownEntriesCountedBeforePersist",
    why: "Thesis 10.2.1: a leader counts its own entries before they are on its disk.",
    edits: [{ file: leader, at: "? persisted :", find: "persisted", replace: "this.#log.lastIndex" }],
  },
  {
    name: "readWithoutRound",
    why: "Thesis 6.4: a leader answers a read without having asked whether it still is one.",
    edits: [{ file: leader, find: "(this.#followers.get(id)?.round ?? 0)", replace: "current" }],
  },
  {
    name: "askerOfFiveSuffices",
    why: "A leader takes one follower's question for a majority, of however many.",
    edits: [{ file: leader, find: "votes >= majorityOf(voters.length)", replace: "votes >= 2" }],
  },
  {
    name: "timeFromTheAnswer",
    why: "Thesis 6.4.1: a leader counts its time from when an answer came, and not from when it asked.",
    edits: [
      { file: leader, find: "this.#lease.sent(this.#reads.current, now());", replace: "" },
      {
        file: leader,
        find: "follower.round = Math.max(follower.round, answer.round);",
        replace:
          "follower.round = Math.max(follower.round, answer.round); this.#lease.sent(answer.round, this.#parts.now());",
      },
    ],
  },
  {
    name: "timeByTheFirst",
    why: "A leader counts its time from what one of the others has answered, of however many.",
    edits: [
      {
        file: leader,
        find: "holding.length >= majorityOf(voters.length)",
        replace: "holding.length >= Math.min(2, voters.length)",
      },
    ],
  },
  {
    name: "timeByLearners",
    why: "A leader counts its time from what learners have answered, too.",
    edits: [
      {
        file: leader,
        at: "const holding = voters.filter(",
        find: "voters",
        replace: "[...voters, ...this.#log.memberships.current.learners]",
      },
    ],
  },
  {
    name: "timeAfterTheWord",
    why: "A leader that has told another server to stand goes on counting on its time.",
    edits: [{ file: leader, find: "this.#lease.suspend();", replace: "" }],
  },
  {
    name: "lateWordObeyed",
    why: "A transfer of which the leader has said that it is over still frees who has promised to hold to it.",
    edits: [{ file: electionTimer, find: "transfer <= this.#transfersOver", replace: "false" }],
  },
  {
    name: "anybodyTransfers",
    why: "A server stands for election because a server asks it to that does not lead.",
    edits: [{ file: raft, find: "message.from !== this.#leaderId", replace: "this.#leading !== undefined" }],
  },
  {
    name: "transferBeginsAsOver",
    why: "A leader counts on its time again, and voters have not heard that the transfer is over.",
    edits: [
      {
        file: leader,
        find: "this.#transfers - (this.#transferAsked ? 1 : 0)",
        replace: "0",
      },
    ],
  },
  {
    name: "timeByItsOwnTimeout",
    why: "A leader takes all others to hold to it for as long as it would hold to one of them.",
    edits: [
      {
        file: leader,
        find: "this.#lease.answered(answer);",
        replace: "this.#lease.answered({ ...answer, holdMs: this.#parts.settings.holdMs });",
      },
    ],
  },
  {
    name: "promiseNotKept",
    why: "A server that begins again with a shorter timeout keeps to that, and not to what it has promised.",
    edits: [
      {
        file: "packages/core/src/raft/options.ts",
        find: "hardState.promisedMs ?? (hardState.term > foundingTerm ? holdMs : 0)",
        replace: "hardState.term > foundingTerm ? holdMs : 0",
      },
    ],
  },
  {
    name: "promiseNotPersisted",
    why: "A server that promises for longer than its disk says answers before that is written.",
    edits: [
      {
        file: outbox,
        at: "|| promisedMs !== before.promisedMs",
        find: "promisedMs !== before.promisedMs",
        replace: "false",
      },
    ],
  },
  {
    name: "timeIgnoresRates",
    why: "A leader counts on its time for as long as voters hold to it, by its own clock.",
    edits: [{ file: leaderLease, find: "relied(holdMs, this.#clockRateError)", replace: "holdMs" }],
  },
  {
    name: "timeIgnoresSuspension",
    why: "A leader whose machine was suspended counts by its steady clock alone, which stood still.",
    edits: [
      {
        file: leaderLease,
        find: "elapsedMs(held.from, now) < held.ms",
        replace: "now.monotonicMs - held.from.monotonicMs < held.ms",
      },
    ],
  },
  {
    name: "votesAfterRestart",
    why: "A server that begins again votes at once, although it may just have heard a leader.",
    edits: [{ file: electionTimer, find: "promisedBefore(recovered, settings.holdMs)", replace: "0" }],
  },
  {
    name: "votesWhileHeld",
    why: "Thesis 4.2.3: a server that hears a leader gives no pre-vote, but its vote.",
    edits: [
      {
        file: raft,
        find: "if (this.#holdsAgainst(message)) return false;",
        replace: 'if (this.#hearsLeader && message.kind === "pre-vote") return false;',
      },
      { file: raft, find: "if (this.#timer.forbids(term, transfer)) return false;", replace: "" },
    ],
  },
  {
    name: "standsByTicksAlone",
    why: "A server stands after so many ticks, however soon they came after one another.",
    edits: [
      {
        file: electionTimer,
        at: "this.#electionTicks && !this.isHeld",
        find: "!this.isHeld",
        replace: "true",
      },
    ],
  },
  {
    name: "readBeforeOwnCommit",
    why: "Thesis 6.4: a new leader answers reads by a commit index that may be older than its predecessor's.",
    edits: [
      { file: leader, at: "if (!this.#hasCommitted) return;", find: "!this.#hasCommitted", replace: "false" },
    ],
  },
  {
    name: "twoChangesAtOnce",
    why: "Thesis 4.1: a second change of the membership while one is uncommitted.",
    edits: [{ file: leader, find: "memberships.currentIndex > commit", replace: "false" }],
  },
  {
    name: "changeBeforeOwnCommit",
    why: "Thesis 4.1, as corrected in 2015: a change before an entry of the leader's own term is committed.",
    edits: [
      {
        file: leader,
        at: 'if (!this.#hasCommitted) return refused("change-pending");',
        find: "!this.#hasCommitted",
        replace: "false",
      },
    ],
  },
  {
    name: "secondChangeAtOnce",
    why: "Thesis 4.1: a change of the membership does not wait until the one before is committed.",
    edits: [
      { file: leader, find: "memberships.currentIndex > commit", replace: "false" },
      {
        file: "packages/core/src/replica/membership.ts",
        find: "isLeading && appliedIndex >= this.#proposedIndex",
        replace: "isLeading",
      },
    ],
  },
  {
    name: "learnerStands",
    why: "Thesis 4.2.1: a learner stands for election, and votes for itself.",
    edits: [
      {
        file: "packages/core/src/raft/membership.ts",
        find: "if (this.current.voters.includes(id)) return true;",
        replace: "if (isMember(this.current, id)) return true;",
      },
    ],
  },
  {
    name: "removedDisturbs",
    why: "Thesis 4.2.3: a server that was removed stands at once, and servers that hear a leader listen.",
    edits: [
      {
        file: raft,
        find: "if (this.#holdsAgainst(message)) return false;",
        replace: "",
      },
      {
        file: raft,
        find: 'if (this.#mayStand) this.#stand("pre-candidate");',
        replace: 'this.#stand("candidate");',
      },
    ],
  },
]);
