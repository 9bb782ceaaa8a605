/** How long connections of HTTP/1.1 are waited for, ms. */
export interface HttpTimes {
  /** A connection on which nothing comes for so long, while nothing is answered on it, is closed. */
  readonly idleMs: number;
  /** The head of a request is whole in this time from its first byte on; it is looked after so often. */
  readonly headMs: number;
  readonly headLookMs: number;
  /** A request, or the first of a stream, has to be there in this time after its head: it holds a slot. */
  readonly requestMs: number;
  /** What follows of a request that has been answered. */
  readonly restMs: number;
  /** A client that takes nothing of its answer for so long is gone, or keeps memory for nothing. */
  readonly stuckMs: number;
}

export const httpTimes: HttpTimes = {
  idleMs: 60_000,
  headMs: 10_000,
  headLookMs: 1_000,
  requestMs: 60_000,
  restMs: 10_000,
  stuckMs: 120_000,
};
