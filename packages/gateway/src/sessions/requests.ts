import type { AcquireOptions, JsonValue } from "leasehold";

/** One request, as the gateway's server received it. */
export interface Call {
  /** The user; the same name for all clients where there are no users. */
  readonly owner: string;
  /** When the request arrived, by the gateway's steady clock. */
  readonly receivedMs: number;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
  /** The idempotency key: the client repeats it with a request that may have arrived before. */
  readonly key?: string | undefined;
}

export interface SessionRequest {
  readonly ttl?: string | number | undefined;
}

export interface AcquireRequest extends Pick<AcquireOptions, "limit" | "mode" | "fair"> {
  readonly resource?: string | undefined;
  readonly resources?: readonly string[] | undefined;
  readonly session?: string | undefined;
  /** The ttl of the session that this call opens. */
  readonly ttl?: string | number | undefined;
  readonly wait?: string | number | undefined;
  readonly maxHold?: string | number | undefined;
  readonly data?: JsonValue | undefined;
}

export interface ResourceRequest {
  readonly resource: string;
}

export interface HandOverRequest extends ResourceRequest {
  readonly to: string;
}
