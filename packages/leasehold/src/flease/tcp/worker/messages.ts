import type { AttemptRequest, ReleaseRequest, Upkeep } from "../../../lease/provider.js";
import type {
  Explanation,
  Guarantees,
  HolderAction,
  HolderHint,
  ResourceHint,
} from "../../../lease/types.js";
import { LeaseholdError, LeaseLostError } from "../../../lease/errors.js";
import type { ErrorCode, LossReason } from "../../../lease/errors.js";
import type { FleaseSettings } from "../../protocol/settings.js";
import type { ClockStart } from "../../threads.js";
import type { LogLevel } from "../../../runtime/event-log.js";
import type { LogEvent } from "../../../runtime/logger.js";
import type { FleaseOptions } from "../types.js";

/**
 * Messages between the program's thread and the renewing thread. End times of leases are not among them.
 */

/** Start parameters of the thread. */
export interface WorkerOrders {
  readonly addresses: readonly string[];
  readonly options: Omit<FleaseOptions, "logger" | "renewInWorker">;
  /** Buffer of `SharedThreads`. */
  readonly threads: SharedArrayBuffer;
  /** Without a sign of life from the program's thread for this long, renewal stops, ms. */
  readonly busyMsMax: number;
}

/** Calls of the program's thread, by name: parameters and result. */
interface Calls {
  attempt: [{ readonly request: AttemptRequest }, AttemptAnswer];
  renew: [{ readonly grant: number }, boolean];
  /** `early`: the program's thread saw it end, by the clocks, before its end on the steady clock. */
  release: [{ readonly grant: number; readonly early: boolean }, boolean];
  /** Changes how it is kept from now on. */
  keep: [{ readonly grant: number; readonly upkeep: Upkeep }, boolean];
  /** Stops its renewal, so that it runs out. */
  detach: [{ readonly grant: number }, boolean];
  query: [AboutResource, HolderHint];
  /** `partial`: gaps of an incomplete list are reported instead of an error. */
  list: [{ readonly prefix: string; readonly timeoutMs: number; readonly partial: boolean }, ListAnswer];
  explain: [AboutResource, Explanation];
  requestRelease: [AboutResource, HolderAction];
  favour: [AboutResource & { readonly to: string }, boolean];
  breakLease: [AboutResource, HolderAction];
}

interface AboutResource {
  readonly resource: string;
  readonly timeoutMs: number;
}

export type CallName = keyof Calls;
export type Asked<Name extends CallName> = Calls[Name][0];
export type Answer<Name extends CallName = CallName> = Calls[Name][1];

/** A call with its number, which the answer repeats. */
export type Call = {
  [Name in CallName]: { readonly type: Name; readonly call: number } & Asked<Name>;
}[CallName];

export type ToWorker =
  | Call
  | { readonly type: "cancel"; readonly call: number }
  | { readonly type: "watch"; readonly watch: number; readonly prefix: string }
  | { readonly type: "unwatch"; readonly watch: number }
  | { readonly type: "close" };

export type AttemptAnswer =
  | {
      readonly kind: "granted";
      readonly grant: number;
      readonly token: bigint;
      readonly validity: SharedArrayBuffer;
      readonly clock: ClockStart;
    }
  | { readonly kind: "held"; readonly holder?: string; readonly retryInMs: number }
  | { readonly kind: "failed"; readonly error: PlainError; readonly retryInMs?: number };

export interface ListAnswer {
  readonly hints: ResourceHint[];
  readonly incomplete?: string;
}

export type FromWorker =
  | {
      readonly type: "opened";
      readonly holder: string;
      readonly guarantees: Guarantees;
      /** ε and ρ of the cluster. */
      readonly clocks: Pick<FleaseSettings, "maxClockSkewMs" | "clockRateError">;
    }
  | { readonly type: "failed"; readonly error: PlainError }
  | { readonly type: "answer"; readonly call: number; readonly value: Answer }
  | { readonly type: "thrown"; readonly call: number; readonly error: PlainError }
  /** The proposer continues as another owner. */
  | { readonly type: "holder"; readonly holder: string }
  | { readonly type: "lost"; readonly grant: number; readonly error: PlainError }
  | { readonly type: "hint"; readonly resource: string }
  | { readonly type: "releaseRequested"; readonly request: ReleaseRequest }
  | { readonly type: "watched"; readonly watch: number; readonly hint: ResourceHint }
  | { readonly type: "log"; readonly level: LogLevel; readonly message: string; readonly event: LogEvent };

/** An error as plain data: classes and their fields do not cross threads. */
export interface PlainError {
  readonly code: ErrorCode | undefined;
  readonly message: string;
  readonly resource?: string;
  readonly reason?: LossReason;
}

export function plainError(error: unknown): PlainError {
  if (error instanceof LeaseLostError) {
    const { code, message, resource, reason } = error;
    return { code, message, resource, reason };
  }
  if (error instanceof LeaseholdError) return { code: error.code, message: error.message };
  return { code: undefined, message: error instanceof Error ? error.message : String(error) };
}

export function realError(plain: PlainError): Error {
  if (plain.resource !== undefined) return new LeaseLostError(plain.resource, plain.reason ?? "expired");
  return plain.code === undefined ? new Error(plain.message) : new LeaseholdError(plain.code, plain.message);
}

/** Restores an error of ours; any other is a failure of the thread. */
export function leaseholdError(plain: PlainError): LeaseholdError {
  const error = realError(plain);
  return error instanceof LeaseholdError ? error : new LeaseholdError("CLOSED", plain.message);
}
