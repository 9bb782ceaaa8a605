import type { Lease } from "leasehold";
import type { DeadlineItem } from "leasehold/common";
import { GatewayError } from "./errors.js";
import { KeyedCalls } from "./keyed-calls.js";

/** One lease of a session. */
export interface Tenure {
  /** The id in requests: the session's id, which is secret, and a number. */
  readonly id: string;
  readonly lease: Lease;
}

/** A call for leases that can be found again by its key. */
export interface GrantCall {
  readonly granted: Promise<readonly Tenure[]>;
  readonly cancel: AbortController;
}

/** The number of idempotency keys that one session remembers. */
const keysMax = 1_024;

/**
 * A client's calls and leases at this gateway. When the client sends nothing for `ttlMs`, the calls end and
 * the leases are released.
 */
export class Session implements DeadlineItem {
  heapIndex = -1;
  readonly id: string;
  /** The user who opened the session. Other users cannot see it. */
  readonly owner: string;
  readonly ttlMs: number;
  readonly tenures = new Map<string, Tenure>();
  readonly calls = new KeyedCalls<GrantCall>(keysMax);
  /** The number of leases that are held or waited for. */
  wanted = 0;
  /** By the gateway's steady clock. */
  endsMs = Infinity;
  /** Whether a call for leases opened the session. It then ends with the last of these leases. */
  isImplicit = false;
  readonly #ended = new AbortController();
  #made = 0;

  constructor(id: string, owner: string, ttlMs: number) {
    this.id = id;
    this.owner = owner;
    this.ttlMs = ttlMs;
  }

  /** Aborts when the session ends. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  add(lease: Lease): Tenure {
    this.#made += 1;
    const tenure = { id: `${this.id}.${this.#made}`, lease };
    this.tenures.set(tenure.id, tenure);
    return tenure;
  }

  end(): void {
    this.#ended.abort(new GatewayError("SESSION_GONE"));
  }
}
