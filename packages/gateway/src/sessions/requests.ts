import type { AcquireOptions, JsonValue } from "leasehold";

/** One request, as the gateway's port has received it. */
export interface Call {
  /** The user; one name for all where there are no users. */
  readonly owner: string;
  /** By the gateway's steady clock, when it was first seen. */
  readonly receivedMs: number;
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  /** The key by which the client repeats a request that may have arrived before. */
  readonly key?: string | undefined;
}

export interface SessionRequest {
  readonly ttl?: string | number | undefined;
}

export interface AcquireRequest extends Pick<AcquireOptions, "limit" | "mode" | "fair"> {
  readonly resource?: string | undefined;
  readonly resources?: readonly string[] | undefined;
  readonly session?: string | undefined;
  /** Of a session that begins with this call. */
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
