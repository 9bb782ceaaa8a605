import type { BoundedMove } from "./model.js";

/** The bounds of a small world. Within them the search is exhaustive. */
export interface Bounds {
  /** True time runs from 0 to this. */
  readonly timeMax: number;
  /** The true difference of two clocks at one instant, which the protocol may assume to be smaller. */
  readonly clockDifferenceMax: number;
  /**
   * How far an acceptor's clock may fall below all its former readings when it restarts. More than ε breaks
   * A-wall.
   */
  readonly restartStepBackMax: number;
  /** Restarts of all acceptors together. Their memory is lost. */
  readonly crashes: number;
  /** Acquisitions of each proposer, all together the number of ballots but for renewals in two phases. */
  readonly acquisitions: readonly number[];
  readonly renewals: readonly number[];
  /** Restarts of each proposer. */
  readonly restarts: readonly number[];
  /** Breaking a lease. */
  readonly bars: number;
  /** Discarding of idle resources. */
  readonly discards: number;
  /**
   * Whether refusals can be late, too. Otherwise each arrives at once or never. This hides little: a late
   * refusal acts like a timeout, and reports a higher ballot.
   */
  readonly lateRefusals: boolean;
  /** I2 needs the greatest token in every state, which increases the number of states. */
  readonly checkTokens: boolean;
  /** I4 holds only with net G. */
  readonly checkGuards: boolean;
}

export const noBounds: Bounds = {
  timeMax: 3,
  clockDifferenceMax: 1,
  restartStepBackMax: 0,
  crashes: 0,
  acquisitions: [1, 1],
  renewals: [0, 0],
  restarts: [0, 0],
  bars: 0,
  discards: 0,
  lateRefusals: false,
  checkTokens: false,
  checkGuards: true,
};

/** Counters of bounded moves are kept in four bits each. */
export const boundMax = 15;

const boundOf = {
  crash: "crashes",
  bar: "bars",
  discard: "discards",
  acquire: "acquisitions",
  renew: "renewals",
  restart: "restarts",
} as const satisfies Record<BoundedMove, keyof Bounds>;

/** The bound of such a move by `proposer`; moves of acceptors share one bound. */
export function limitOf(bounds: Bounds, kind: BoundedMove, proposer: number): number {
  const bound = bounds[boundOf[kind]];
  return typeof bound === "number" ? bound : (bound[proposer] ?? 0);
}
