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
import type { Logger } from "../../../runtime/logger.js";
import type { FleaseOptions } from "../types.js";

/**
 * What the thread of the program and the thread that renews say to each other. Times of leases are not among
 * it.
 */

/** What the thread is started with. */
export interface WorkerOrders {
  readonly addresses: readonly string[];
  readonly options: Omit<FleaseOptions, "logger" | "renewInWorker">;
  /** Buffer of `SharedThreads`. */
  readonly threads: SharedArrayBuffer;
  /** Without a sign of life from the program's thread for this long, nothing is renewed any more, ms. */
  readonly busyMsMax: number;
}

/** What the program's thread asks of the other, by name: what it says, and the value that it is answered. */
interface Calls {
  attempt: [{ readonly request: AttemptRequest }, AttemptAnswer];
  renew: [{ readonly grant: number }, boolean];
  /** `early`: the program's thread saw it end, by the clocks, before its end on the steady one. */
  release: [{ readonly grant: number; readonly early: boolean }, boolean];
  /** From now on it is kept like this. */
  keep: [{ readonly grant: number; readonly upkeep: Upkeep }, boolean];
  /** It is renewed no more, and runs out. */
  detach: [{ readonly grant: number }, boolean];
  query: [AboutResource, HolderHint];
  /** `partial`: what an incomplete list lacks is told, and no error. */
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

/** A call under its number, which its answer bears. */
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
  /** The proposer goes on as another owner. */
  | { readonly type: "holder"; readonly holder: string }
  | { readonly type: "lost"; readonly grant: number; readonly error: PlainError }
  | { readonly type: "hint"; readonly resource: string }
  | { readonly type: "releaseRequested"; readonly request: ReleaseRequest }
  | { readonly type: "told"; readonly watch: number; readonly hint: ResourceHint }
  | { readonly type: "log"; readonly level: keyof Logger; readonly message: string };

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

/** An error that is known to be one of ours; any other is a thread that failed. */
export function leaseholdError(plain: PlainError): LeaseholdError {
  const error = realError(plain);
  return error instanceof LeaseholdError ? error : new LeaseholdError("CLOSED", plain.message);
}
