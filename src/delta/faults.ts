/**
 * The known mistakes that can be made with leases on shared storage, each of which the tests must be able to make on purpose
 * and to catch. As in `src/flease/protocol/faults.ts` this is the product's side: nothing is switched on, and nothing can be. Tests
 * resolve `#delta-faults` to `planted-faults.ts` instead.
 */
export const noFaults = {
  // What would hide a mistake, and is none by itself.
  /**
   * Δ counts from the return of contend and renew, and a renewal that began in time may end after that, as in the paper, whose
   * Δ + 6δ allows for it.
   */
  holdFromReturn: false,

  /** Waiting Δ + 5δ, which suffices only where nobody renews as in Fig. 5. */
  waitFiveDelays: false,
  /** Waiting by one's own Δ and δ, not by those of the record. */
  ownWait: false,
  /** Waits of the paper's leases are not stretched by ρ. */
  ratesIgnored: false,
  /** No 2δ pause after the write (Fig. 2, line 10). */
  noPause: false,
  /** No second look after the pause (Fig. 2, line 11). */
  noReRead: false,
  /** A reader does not remember what it returned. */
  flickeringReader: false,
  /** What a store wrote for an earlier round counts for nothing, and is asked for again. */
  lateAnswersForgotten: false,
  /** What is known to stand in a store that compares and sets is forgotten before each write. */
  contentsForgotten: false,
  /** An old write replaces a newer one. */
  blindOverwrite: false,
  /** A release is a write like any other, and wins over the record of a successor. */
  releaseOverSuccessor: false,
  /** A free register is taken without the first wait where stores cannot compare and set. */
  freeShortcutWithoutCompareAndSet: false,
  /** A reader that is done frees what other readers hold by. */
  readerReleaseFreesAll: false,
  /** A reader whose claim comes to nothing frees its record. */
  readerWithdraws: false,
  /** Whoever waits looks at the greatest record alone, and replaces what is smaller. */
  greatestRecordOnly: false,
  /** A reader's record bears its own Δ and epoch only, and hides the greater ones of others. */
  readerHidesOthers: false,
  /** What a contender writes is not announced, and holders that ask for announcements miss it. */
  quietClaims: false,
  /** Consensus objects of one process choose the same ranks. */
  rankOfProcess: false,
  /** A conditional lease counts from the end of the write that won it. */
  holdFromEndOfWrite: false,
  /** Leases take any epoch, also such as the farm's stores have not been told of. */
  epochsUnbounded: false,
  /** What others have waited for a store counts for nothing. */
  waitIsForgotten: false,
  /** Two lists of the same generation are taken for two farms. */
  tiesAreRefused: false,
  /** A store that only the list knows which lost against another of its generation is taken for one that was replaced. */
  tieLosersAreReplaced: false,
  /** Registers and consensus ask a store that has come back empty. */
  forgottenRegistersCount: false,
  /** A store that has forgotten counts at once. */
  forgottenStoreCounts: false,
};

export type Faults = { [Name in keyof typeof noFaults]: boolean };

export const faults: Readonly<Faults> = Object.freeze(noFaults);
