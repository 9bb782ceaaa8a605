/**
 * The known mistakes that can be made with replicated leases, in the state machine and in `src/core/replica`, each of which the
 * tests must be able to make on purpose and to catch. As in `src/flease/protocol/faults.ts` this is the product's side: nothing is
 * switched on, and nothing can be. Tests resolve `#core-faults` to `planted-faults.ts` instead.
 */
export const noFaults = {
  /** Duplicates are refused when they are proposed, and not again when they are applied. */
  duplicatesUncheckedAtApply: false,
  /** A lease ends, and its keys stay. */
  keysLeftBehind: false,
  /** A write is answered when it is proposed. */
  answeredWhenProposed: false,
  /** Every server tracks leases and ends them. */
  followersEndLeases: false,
  /** As in the pattern's listing: the leader removes the lease when it has run out, before that is committed. */
  removedBeforeCommitted: false,
  /** A leader refreshes leases without having asked whether it still is one. */
  refreshWithoutRound: false,
  /** A lease whose end is in the log is refreshed. */
  refreshAfterEndProposed: false,
  /** A refresh is carried out although nobody waits for it any more. */
  staleRefresh: false,
  /** A refresh is answered before the lease is there that a committed grant has made. */
  refreshBeforeApplied: false,
  /** A new leader gives leases nothing for the time that it does not know of. */
  noExtraLife: false,
  /** What is left of a lease stays written down although it was refreshed. */
  oldTimeStays: false,
  /** What could not be proposed is not found again. */
  endForgotten: false,
  /** All leases that have run out end in one entry. */
  endsUnbounded: false,
  /** Leases that have run out end in one revision. */
  endTogether: false,
  /** A snapshot begins with a copy of the whole state. */
  snapshotCopiedAtOnce: false,
  /** A read goes on to its end, however long it takes. */
  readsInOneTurn: false,
  /** So does a watch that is behind. */
  watchesInOneTurn: false,
  /** So does a command that changes many keys. */
  commandsInOneTurn: false,
  /** What was compacted away is removed at once. */
  sweptInOneTurn: false,
  /** A read that takes several turns sees each key as it is when it comes to it. */
  readsMoveOn: false,
  /** A read that takes several turns goes through the keys while others change them. */
  readsLiveKeys: false,
  /** A slow watcher misses what is changed meanwhile. */
  slowWatcherSkips: false,
  /** A write that may have been proposed is proposed again. */
  proposedTwice: false,
  /** Each transaction inside of another may have as many operations again, and none is too deep for the check. */
  budgetOfEachLevel: false,
  /** All that one revision has for a watch is gathered, however much it is. */
  revisionsGathered: false,
  /** What cannot be many may be in a watch's response. */
  eventsSpread: false,
  /** What is thrown for one request or stream is not kept there. */
  mistakesEscape: false,
  /** Nothing is compacted but by clients. */
  historyGrows: false,
  /** One client may have all the room that there is for requests. */
  sharesUnfair: false,
  /** A request that nobody waits for any more stays where it waits. */
  requestsStay: false,
  /** What was compacted away still counts. */
  bytesStay: false,
  /** All versions of a key are one piece of a snapshot, however many there are. */
  historyInOnePiece: false,
  /** A leader takes a command that was meant for it in an earlier term: whoever sent it may have proposed it again. */
  lateProposalTaken: false,
};

export type Faults = { [Name in keyof typeof noFaults]: boolean };

export const faults: Readonly<Faults> = Object.freeze(noFaults);
