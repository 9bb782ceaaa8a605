/**
 * The known mistakes that can be made with a replicated log, each of which the tests must be able to make on purpose and to
 * catch. As in `src/flease/protocol/faults.ts` this is the product's side: nothing is switched on, and nothing can be. Tests resolve
 * `#raft-faults` to `planted-faults.ts` instead.
 */
export const noFaults = {
  /** Figure 2, persistent state: the vote is forgotten by a restart. */
  voteNotPersisted: false,
  /** 5.4.1: a vote for whoever asks first, also if its log is behind. */
  votesForOldLogs: false,
  /** 5.4.2, figure 8: an entry of an older term counts as committed once a majority has it. */
  oldTermCommittedByCounting: false,
  /** 5.3: entries are appended without a look at the one before them. */
  previousTermUnchecked: false,
  /** 5.3: entries that disagree with the leader's stay. */
  conflictsKept: false,
  /** Thesis 10.2.1: a leader counts its own entries before they are on its disk. */
  ownEntriesCountedBeforePersist: false,
  /** Thesis 6.4: a leader answers a read without having asked whether it still is one. */
  readWithoutRound: false,
  /** Thesis 6.4: a new leader answers reads by a commit index that may be older than its predecessor's. */
  readBeforeOwnCommit: false,
  /** Thesis 4.1: a second change of the membership while one is uncommitted. */
  twoChangesAtOnce: false,
  /** Thesis 4.1, as corrected in 2015: a change before an entry of the leader's own term is committed. */
  changeBeforeOwnCommit: false,
};

export type Faults = { [Name in keyof typeof noFaults]: boolean };

export const faults: Readonly<Faults> = Object.freeze(noFaults);
