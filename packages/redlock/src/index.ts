/**
 * The API of npm's `redlock` 5.0.0-beta.2 on leases of Leasehold. A program changes the import and the
 * constructor's first argument.
 */
export { Lock, Redlock, Redlock as default, type UsingContext } from "./redlock.js";
export type { RedlockAbortSignal } from "./abort-signal.js";
export type { Client } from "./ground.js";
export type { Settings } from "./settings.js";
export { ExecutionError, ResourceLockedError } from "./errors.js";
export type { ClientExecutionResult, ExecutionResult, ExecutionStats } from "./errors.js";
