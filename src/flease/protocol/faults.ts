/**
 * The protocol's known mistakes, each of which the tests must be able to make on purpose and to catch. This is the
 * product's side of the seam: a frozen object in which nothing is switched on. Tests resolve `#faults` to
 * `planted-faults.ts` instead, which is neither compiled nor packed; there is no other way to switch a fault on.
 *
 * Numbers P1 to P52 are those of `docs/flease.md`.
 */
export const noFaults = {
  // Halves of the protection that can be taken away, to see that the other half protects alone.
  /** Net G: an acceptor replaces unfinished leases of others. P31 is its opposite. */
  netGOff: false,
  /** Net B (P31): ballots are not compared. */
  netBOff: false,
  /** P28: leases are judged by the steady clock alone. */
  wallTestOff: false,
  /** P28: leases are judged by the wall clock alone. */
  rateTestOff: false,

  /** P1 */ noRecoveryWait: false,
  /** P2, F2 */ waitOnlyTtlMax: false,
  /** P3 */ waitTtlMaxAndOneSkew: false,
  /** P4, F1 */ noFloor: false,
  /** P5, F5 */ noSafetyPeriod: false,
  /** P6 */ safetyPeriodOneTickShort: false,
  /** P8, F3 */ ballotsEqualWithinSkew: false,
  /** P9, F4 */ twoClockReadings: false,
  /** P10, F9 */ holderIgnoresExpiry: false,
  /** P11 */ releaseByAnybody: false,
  /** P12 */ releaseBeforeStopping: false,
  /** P13 */ lateAcksCount: false,
  /** P14, F19 */ unconditionalRelease: false,
  /** P15 */ renewalSkipsPromiseCheck: false,
  /** P16 */ renewalWithFreshBallotWithoutRead: false,
  /** P17 */ renewalAfterUndecidedFastAttempt: false,
  /** P18 */ onlyHighestBallotIsRead: false,
  /** P19 */ fastAcquireWithoutFreeTest: false,
  /** P20, F15 */ acksCountedNotAckers: false,
  /** P20 */ smallQuorum: false,
  /** P21, F18 */ anyLengthAccepted: false,
  /** P24 */ renewalShortensGuard: false,
  /** P25 */ lapsedTenureReopened: false,
  /** P26 */ clockBoundsSwapped: false,
  /** P27 */ overByEitherClock: false,
  /** P32, F20 */ discardWithoutFloor: false,
  /** P33 */ heldIsCached: false,
  /** P34, F19 */ ballotsNotIncreasing: false,
  /** P35 */ abandonedRenewalReleased: false,
  /** P36 */ ballotsFromUpperClock: false,
  /** P39 */ lowerClockMonotone: false,
  /** P43 */ lateRenewalStartsTenure: false,
  /** P44 */ releasedLeaseBlocksReader: false,
  /** P45 */ clockFaultForgets: false,
  /** P46 */ untilBoundByUpperClock: false,
  /** P50: a wall clock that is ahead of the steady one by more than ε ends holds only after a second. */
  onlyStepBackEndsHoldsAtOnce: false,
  /** P51: the program's thread relies on a lease although its clocks disagree. */
  programThreadTrustsClocks: false,
  /** P52: an acceptor keeps another's lease for its length by its own steady clock, whatever the rates. */
  guardIgnoresRates: false,
  /** P45's sister: a clock fault during a recovery wait starts that wait anew from a clock that stepped back. */
  clockFaultShortensWait: false,
  /** A write may name any token, also one beyond every ballot of its time. */
  anyTokenAccepted: false,
  /** A renewal waits for its answers no longer than any other phase, however much there is to do. */
  impatientRenewals: false,
  /** An acceptor lets in new requests however late it is. */
  everythingIsAdmitted: false,
  /** An acceptor that is late turns away also those who ask for little beside one who floods it. */
  lightAreTurnedAway: false,
  /** Breaking a lease frees the resource at once, under the feet of its holder. */
  barFrees: false,

  // Beside the protocol: what one participant asks must harm nobody else.
  /** A list looks at everything in one step. */
  scansInOneStep: false,
  /** Whoever asked first is answered in full before the next connection has its turn. */
  oneQueueForAll: false,
  /** One who watches and was too slow goes on with what is still known. */
  missedChangesAreForgotten: false,
  /** A lease that was over when somebody met it, and is renewed all the same, is no change. */
  lateRenewalIsNoNews: false,
  /** Whoever comes first may have all of what an acceptor keeps. */
  noQuotas: false,
};

export type Faults = { [Name in keyof typeof noFaults]: boolean };

export const faults: Readonly<Faults> = Object.freeze(noFaults);
