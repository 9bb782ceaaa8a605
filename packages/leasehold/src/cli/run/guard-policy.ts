/**
 * Decides when a guarded process has to end. Pure functions, which can be tested without processes or clocks.
 */

/** A deadline on both clocks of the machine; the earlier one counts. */
export interface Deadline {
  /**
   * CLOCK_MONOTONIC, which is the same for all processes of a machine, and stops while the machine is
   * suspended.
   */
  readonly monotonicMs: number;
  /** System time, which continues while the machine is suspended, but may be set. */
  readonly wallMs: number;
}

export interface Limits {
  /** The time between SIGTERM and SIGKILL, if the deadline leaves that much. */
  readonly killAfterMs: number;
  /** SIGKILL is sent this long before the deadline, because it has to take effect by then. */
  readonly killMarginMs: number;
  /** A command starts if at least this much of the lease is left, or if the lease has been renewed. */
  readonly startMs: number;
}

export type Cause =
  /** The deadline came close: the lease was not renewed in time. */
  | "deadline"
  /** The pipe to `run` closed: the lease is no longer renewed. */
  | "orphaned"
  /** `run` reported the loss of the lease. */
  | "lost";

export interface Facts {
  readonly now: Deadline;
  readonly deadline: Deadline;
  readonly orphaned: boolean;
  readonly lost: boolean;
  /** The monotonic time at which SIGTERM was sent, if it was. */
  readonly terminatedAtMs?: number;
}

export interface Decision {
  readonly action: "wait" | "terminate" | "kill";
  readonly cause?: Cause;
  /** The longest time until the next decision. */
  readonly wakeInMs: number;
}

/** The child has this long to clean up, unless the lease is short. */
const KILL_AFTER_DEFAULT_MS = 5_000;
/** A quarter of the TTL: renewals start after a third, so many must fail before the child is terminated. */
const KILL_AFTER_SHARE = 4;
/**
 * On a busy machine a timer may be tens of milliseconds late; SIGKILL must still be sent before the deadline.
 */
const KILL_MARGIN_MIN_MS = 100;
const KILL_MARGIN_SHARE = 20;
/** SIGKILL is repeated this often until the group is gone. */
const KILL_AGAIN_MS = 20;
/**
 * The longest pause between two readings of the clocks: timers stop while the machine is suspended, and
 * afterwards only the system time shows that the deadline has passed.
 */
const LOOK_MS = 100;

export function defaultKillAfterMs(ttlMs: number): number {
  return Math.min(KILL_AFTER_DEFAULT_MS, ttlMs / KILL_AFTER_SHARE);
}

/** For very short leases the margin is a quarter of the TTL, so that the child has some time. */
export function killMarginMs(ttlMs: number): number {
  return Math.min(Math.max(KILL_MARGIN_MIN_MS, ttlMs / KILL_MARGIN_SHARE), ttlMs / KILL_AFTER_SHARE);
}

/**
 * `killAfter` must be less than half the TTL; otherwise SIGTERM would come before several attempts to renew.
 */
export function killAfterMsMax(ttlMs: number): number {
  return ttlMs / 2;
}

/**
 * Half of the TTL, as a renewal is requested before less is left. After a slow acquisition, a command that
 * started at once could be ended before the first renewal is confirmed.
 */
export function startMs(ttlMs: number): number {
  return ttlMs / 2;
}

export function remainingMs(now: Deadline, deadline: Deadline): number {
  return Math.min(deadline.monotonicMs - now.monotonicMs, deadline.wallMs - now.wallMs);
}

/** The action to take now. A later renewal does not withdraw SIGTERM. */
export function decide(facts: Facts, limits: Limits): Decision {
  const remaining = remainingMs(facts.now, facts.deadline);
  const untilKillMs = remaining - limits.killMarginMs;
  const cause = causeOf(facts);
  if (facts.lost || untilKillMs <= 0) return { action: "kill", cause, wakeInMs: KILL_AGAIN_MS };
  if (facts.terminatedAtMs !== undefined) {
    const patienceMs = facts.terminatedAtMs + limits.killAfterMs - facts.now.monotonicMs;
    if (patienceMs <= 0) return { action: "kill", cause, wakeInMs: KILL_AGAIN_MS };
    return { action: "wait", wakeInMs: Math.min(untilKillMs, patienceMs, LOOK_MS) };
  }
  const untilTerminateMs = remaining - limits.killAfterMs;
  if (facts.orphaned || untilTerminateMs <= 0) {
    return { action: "terminate", cause, wakeInMs: Math.min(untilKillMs, limits.killAfterMs, LOOK_MS) };
  }
  return { action: "wait", wakeInMs: Math.min(untilKillMs, untilTerminateMs, LOOK_MS) };
}

/** Whether a command may start: it must not start only to be terminated. */
export function mayStart(facts: Facts, limits: Limits, isRenewed: boolean): boolean {
  const isLongEnough = isRenewed || remainingMs(facts.now, facts.deadline) >= limits.startMs;
  return isLongEnough && decide(facts, limits).action === "wait";
}

function causeOf(facts: Facts): Cause {
  if (facts.lost) return "lost";
  return facts.orphaned ? "orphaned" : "deadline";
}
