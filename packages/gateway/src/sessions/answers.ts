/** The answers to clients, as JSON. Times are milliseconds. */

/** A lease. The client holds it if `validForMs` is more than 0. */
export interface LeaseAnswer {
  /** The id of the lease in later requests. Only its client knows it. */
  readonly lease: string;
  readonly session: string;
  readonly resource: string;
  readonly slot: number;
  /** The gateway's name: others see it as the holder. */
  readonly holder: string;
  /** The fencing token: a decimal number as text. */
  readonly token: string;
  /** The session ends when its client sends nothing for this long. */
  readonly ttlMs: number;
  /**
   * How long the client may rely on the lease, by its own steady clock, counted from just before it sent the
   * request.
   */
  readonly validForMs: number;
  /** Whether another participant has asked for the lease to be released. */
  readonly releaseRequested: boolean;
  /** Why the lease was lost. */
  readonly lost?: string;
}

export interface SessionAnswer {
  readonly session: string;
  readonly ttlMs: number;
  /** As in `LeaseAnswer`. */
  readonly validForMs: number;
  readonly leases: readonly LeaseAnswer[];
}

/** The answer to a call that acquires leases. */
export interface GrantAnswer {
  readonly session: string;
  readonly ttlMs: number;
  /** The least of the leases' values. */
  readonly validForMs: number;
  readonly leases: readonly LeaseAnswer[];
}

/** The call continues; the client asks for its result with the same key. */
export interface WaitingAnswer {
  readonly waiting: true;
  readonly session: string;
}
