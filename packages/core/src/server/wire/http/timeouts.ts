/** Timeouts of HTTP/1.1 connections, ms. */
export interface HttpTimes {
  /** An idle connection is closed after this. */
  readonly idleMs: number;
  /** From the first byte of a request to the end of its head; also the interval of checks. */
  readonly headMs: number;
  readonly headLookMs: number;
  /**
   * From the head to the end of a request, or to the end of the first one in a stream: meanwhile it holds a
   * slot.
   */
  readonly requestMs: number;
  /** For reading the rest of an answered request. */
  readonly restMs: number;
  /** A client that reads nothing of its answer for this long is gone, or wastes memory. */
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
