import type { Client } from "./ground.js";

/** Another client holds one of the resources, or the lock is no longer held. */
export class ResourceLockedError extends Error {
  override readonly message: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.message = message;
    this.name = "ResourceLockedError";
  }
}

/** The result of one attempt. There is one client, the ground, so one vote decides. */
export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: Set<Client>;
  readonly votesAgainst: Map<Client, Error>;
}

/** The vote of an attempt. */
export type ClientExecutionResult =
  | { client: Client; vote: "for"; value: number }
  | { client: Client; vote: "against"; error: Error };

/** The attempts of a call that succeeded, the last 1,000 of them. */
export interface ExecutionResult {
  attempts: ReadonlyArray<Promise<ExecutionStats>>;
}

/**
 * All attempts of a call failed, or its lock is no longer held. If a lease was lost, `cause` is its
 * `LeaseLostError`.
 */
export class ExecutionError extends Error {
  override readonly message: string;
  /** The last 1,000 attempts. */
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;

  constructor(message: string, attempts: ReadonlyArray<Promise<ExecutionStats>>, options?: ErrorOptions) {
    super(message, options);
    this.message = message;
    this.attempts = attempts;
    this.name = "ExecutionError";
  }
}
