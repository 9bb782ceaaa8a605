/** The answers to clients, as JSON. Times are milliseconds. */

/** A lease that the client holds, if `validForMs` is more than 0. */
export interface LeaseAnswer {
  /** The name of the lease in later requests: a secret of its client. */
  readonly lease: string;
  readonly session: string;
  readonly resource: string;
  readonly slot: number;
  /** The gateway, as others see the holder. */
  readonly holder: string;
  /** The fencing token: a decimal number as text. */
  readonly token: string;
  /** The session ends when nothing is heard of it for so long. */
  readonly ttlMs: number;
  /**
   * How long the client may rely on the lease, by its own steady clock, from the moment before it sent the
   * request.
   */
  readonly validForMs: number;
  /** Another has asked for the resource. */
  readonly releaseRequested: boolean;
  /** Why it was lost. */
  readonly lost?: string;
}

export interface SessionAnswer {
  readonly session: string;
  readonly ttlMs: number;
  /** As that of a lease. */
  readonly validForMs: number;
  readonly leases: readonly LeaseAnswer[];
}

/** The answer to a call for leases. */
export interface GrantAnswer {
  readonly session: string;
  readonly ttlMs: number;
  /** For all leases: the least of theirs. */
  readonly validForMs: number;
  readonly leases: readonly LeaseAnswer[];
}

/** The call goes on, and is asked for again with its key. */
export interface WaitingAnswer {
  readonly waiting: true;
  readonly session: string;
}
