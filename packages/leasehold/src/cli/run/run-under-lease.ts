import { setTimeout as sleep } from "node:timers/promises";
import { LeaseholdError, type LeaseLostError } from "../../lease/errors.js";
import type { Duration, JsonValue, Lease, Leases, TryAcquireOptions } from "../../lease/types.js";
import { formatDuration, parseDuration } from "../../lease/duration.js";
import { exitCode } from "../common/exit-codes.js";
import { shortTime } from "../output/present.js";
import { CommandFailure, type ErrorCodes, usageError } from "../common/failure.js";
import type { Wanted } from "../common/wanted.js";
import { now } from "./guard-link.js";
import {
  type Deadline,
  type Limits,
  defaultKillAfterMs,
  killAfterMsMax,
  killMarginMs,
  startMs,
} from "./guard-policy.js";
import { type CommandBytes, bytesOf } from "../common/command-bytes.js";
import type { GuardStarter } from "./guard-starter.js";
import { type Ending, GuardedCommand } from "./guarded-command.js";
import { type SignalRelay, exitCodeOfSignal } from "./signal-relay.js";

export type RunRequest = Wanted & RunTerms;

interface RunTerms {
  readonly command: string;
  readonly args: readonly string[];
  /** The command as bytes, if they differ from these words in UTF-8. */
  readonly bytes?: CommandBytes;
  readonly ttl?: Duration;
  /** Data of the tenure for others. */
  readonly data?: JsonValue | undefined;
  /** The wait for the lease; 0: no wait. Not used with a handle. */
  readonly wait?: Duration;
  readonly killAfter?: Duration;
  readonly conflictExitCode: number;
  readonly lostExitCode: number;
  /** Whether to end the command with SIGTERM when somebody else asks for the lease. */
  readonly yields?: boolean;
  readonly guardPath?: string;
  /** Supplies guards that were started during the acquisition. */
  readonly guards?: GuardStarter;
  /** Prints messages: errors, which have codes, or notes. */
  readonly print: (message: string, codes?: ErrorCodes) => void;
}

/**
 * If the deadline moves without a renewal, through a change of the clock, the guard is notified within this
 * fraction of the TTL.
 */
const WATCH_SHARE = 20;
const WATCH_MIN_MS = 25;
/** When only this fraction of its margin is left, the guard has failed to kill the command. */
const LAST_MARGIN_SHARE = 2;
/** A stall for this fraction of the TTL is the likely reason for a failed renewal. */
const STALL_SHARE = 10;
/** If two deadlines differ by less, they are the same one, read twice. */
const DEADLINE_CHANGE_MS = 5;
/**
 * How long to wait for the command's end after the loss of the lease, before the end is reported as
 * unconfirmed.
 */
const LOST_CONFIRM_MS = 5_000;
/** Timeout of the query for the holder after a refused `--try`, for the message. */
const WHO_HOLDS_TIMEOUT_MS = 1_000;

/**
 * Acquires the lease, runs the command under it and releases the lease when the command has ended.
 *
 * @returns the exit code: the command's own, 128 + n for a signal, or one of those in the request.
 * @throws CommandFailure, LeaseholdError if the lease could not be acquired; the reason of the relay's
 *   `withoutCommand` if a signal came before there was a command.
 */
export async function runUnderLease(
  leases: Leases,
  request: RunRequest,
  signals: SignalRelay,
): Promise<number> {
  const { ttlMinMs, ttlMaxMs } = leases.guarantees;
  const ttlMs = request.ttl === undefined ? ttlMaxMs : parseDuration(request.ttl, "--ttl");
  if (ttlMs < ttlMinMs || ttlMs > ttlMaxMs) {
    const range = `${formatDuration(ttlMinMs)} to ${formatDuration(ttlMaxMs)}`;
    throw usageError(`--ttl ${formatDuration(ttlMs)} is outside what the cluster allows: ${range}`);
  }
  const limits = limitsOf(request.killAfter, ttlMs);
  request.guards?.limitIdling();
  const lease = await acquire(leases, request, ttlMs, signals.withoutCommand);
  try {
    // The signal arrived together with the lease; nothing has been started.
    signals.withoutCommand.throwIfAborted();
    return await runHolding(leases, lease, limits, request, signals);
  } finally {
    await lease.release();
  }
}

function limitsOf(killAfter: Duration | undefined, ttlMs: number): Limits {
  const limits = { killMarginMs: killMarginMs(ttlMs), startMs: startMs(ttlMs) };
  if (killAfter === undefined) return { ...limits, killAfterMs: defaultKillAfterMs(ttlMs) };
  const killAfterMs = parseDuration(killAfter, "--kill-after");
  if (killAfterMs >= killAfterMsMax(ttlMs)) {
    throw usageError(
      `--kill-after ${formatDuration(killAfterMs)} must be less than half of the lease's ttl of ${formatDuration(ttlMs)}: less than ${formatDuration(killAfterMsMax(ttlMs))}`,
    );
  }
  return { ...limits, killAfterMs };
}

async function acquire(
  leases: Leases,
  request: RunRequest,
  ttlMs: number,
  signal: AbortSignal,
): Promise<Lease> {
  const { wait, data } = request;
  const term = { ttl: ttlMs, signal, data };
  if ("handle" in request) return await attach(leases, request.handle, term, request);
  const { resource, form = {} } = request;
  try {
    return await leases.acquire(resource, { ...term, ...form, ...(wait !== undefined && { wait }) });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof LeaseholdError) || (error.code !== "LEASE_HELD" && error.code !== "TIMEOUT"))
      throw error;
    // A counted or shared lease has no single holder.
    if (Object.keys(form).length > 0) throw conflict(error.message, error.code, request);
    const waited = error.code === "TIMEOUT" ? "its turn did not come in time; " : "";
    const { why, isConflict } = await whyNot(leases, resource);
    const message = `${resource}: ${waited}${why}`;
    throw isConflict ? conflict(message, error.code, request) : new CommandFailure("unavailable", message);
  }
}

function conflict(
  message: string,
  code: string,
  { conflictExitCode }: Pick<RunTerms, "conflictExitCode">,
): CommandFailure {
  return new CommandFailure("conflict", message, code, conflictExitCode);
}

async function attach(
  leases: Leases,
  handle: string,
  term: TryAcquireOptions,
  request: RunTerms,
): Promise<Lease> {
  try {
    return await leases.attach(handle, term);
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== "HANDLE_SPENT") throw error;
    throw conflict(error.message, error.code, request);
  }
}

/** A conflict, unless nobody can acquire the lease: another holder is then not the reason. */
async function whyNot(leases: Leases, resource: string): Promise<{ why: string; isConflict: boolean }> {
  const options = { timeout: WHO_HOLDS_TIMEOUT_MS };
  const hint = await leases.holder(resource, options).catch(() => undefined);
  if (hint?.state === "held" && hint.holder !== undefined) {
    const left = hint.remainingMs === undefined ? "" : `, ${shortTime(hint.remainingMs)} left unless renewed`;
    return { why: `held by ${hint.holder}${left}`, isConflict: true };
  }
  const explanation = await leases.explain(resource, options).catch(() => undefined);
  if (explanation === undefined || explanation.reasons.length === 0)
    return { why: "another had the lease", isConflict: true };
  return { why: explanation.reasons.join("; "), isConflict: explanation.quorum };
}

async function runHolding(
  leases: Leases,
  lease: Lease,
  limits: Limits,
  request: RunRequest,
  signals: SignalRelay,
): Promise<number> {
  const deadline = deadlineOf(lease);
  const command = new GuardedCommand({
    bytes: request.bytes ?? bytesOf([request.command, ...request.args]),
    env: {
      LEASE_NAME: lease.resource,
      LEASE_SLOT: String(lease.slot),
      LEASE_TOKEN: String(lease.token),
      LEASE_DEADLINE_MS: String(Math.floor(deadline.wallMs)),
    },
    deadline,
    limits,
    ...(request.guardPath !== undefined && { guardPath: request.guardPath }),
    guards: request.guards,
  });
  signals.forwardTo(command);
  answerRequests(lease, command, request);
  const stalls = new Stalls();
  try {
    const ending = await watch(leases, lease, command, deadline, limits, stalls);
    return conclude(ending, lease, request, signals, stalls);
  } finally {
    signals.commandIsGone();
  }
}

/** Sends SIGTERM to the command if the caller wants that. The command decides how long it takes to end. */
function answerRequests(lease: Lease, command: GuardedCommand, request: RunRequest): void {
  const { releaseRequested } = lease;
  const onRequest = (): void => {
    const { message } = releaseRequested.reason as LeaseholdError;
    request.print(request.yields === true ? `${message}: the command is asked to end` : message);
    if (request.yields === true) command.forward("SIGTERM");
  };
  if (releaseRequested.aborted) onRequest();
  else releaseRequested.addEventListener("abort", onRequest, { once: true });
}

/**
 * The lease's end on both clocks. The clocks are read first, so the time until `remaining` answers is on the
 * safe side.
 */
function deadlineOf(lease: Lease): Deadline {
  const { monotonicMs, wallMs } = now();
  const remaining = lease.remaining();
  return { monotonicMs: monotonicMs + remaining, wallMs: wallMs + remaining };
}

/** Stalls of this process since the last renewal. */
class Stalls {
  longestMs = 0;
  #lookedMs = performance.now();

  /** @param afterMs when this check was due, counted from the previous one */
  look(afterMs: number): void {
    const nowMs = performance.now();
    this.longestMs = Math.max(this.longestMs, nowMs - this.#lookedMs - afterMs);
    this.#lookedMs = nowMs;
  }
}

/**
 * Keeps the guard's deadline up to date until the command has ended; `undefined` if the end could not be
 * confirmed.
 */
async function watch(
  leases: Leases,
  lease: Lease,
  command: GuardedCommand,
  first: Deadline,
  { killMarginMs: marginMs }: Limits,
  stalls: Stalls,
): Promise<Ending | undefined> {
  const everyMs = Math.max(WATCH_MIN_MS, lease.ttlMs / WATCH_SHARE);
  let sent = first;
  let last: NodeJS.Timeout | undefined;
  const look = (): void => {
    stalls.look(everyMs);
    // The guard has killed the command by then, unless the guard has been stopped.
    const untilLastMs = lease.remaining() - marginMs / LAST_MARGIN_SHARE;
    if (untilLastMs <= 0) command.lose();
    else if (untilLastMs < everyMs) last = setTimeout(look, untilLastMs);
    sendIfMoved();
  };
  const sendIfMoved = (): void => {
    const deadline = deadlineOf(lease);
    const isMoved = Math.abs(deadline.monotonicMs - sent.monotonicMs) >= DEADLINE_CHANGE_MS;
    // The guard must not wait for a time that repeats. It cannot distinguish a clock that was set forward
    // from a suspension.
    const isSetBack = sent.wallMs - deadline.wallMs >= DEADLINE_CHANGE_MS;
    if (!isMoved && !isSetBack) return;
    stalls.longestMs = 0;
    sent = deadline;
    command.moveDeadline(deadline);
  };
  const watching = setInterval(look, everyMs);
  // Sent at once: on a busy machine this process may run again much later.
  const stopListening = leases.on("renewed", ({ lease: { resource, token } }) => {
    if (resource === lease.resource && token === lease.token) sendIfMoved();
  });
  const confirmed = new AbortController();
  const signal = lease.signal;
  const lost = new Promise<undefined>((resolve) => {
    const onLost = (): void => {
      command.lose();
      sleep(LOST_CONFIRM_MS, undefined, { signal: confirmed.signal }).then(resolve, () => undefined);
    };
    if (signal.aborted) onLost();
    else signal.addEventListener("abort", onLost, { once: true, signal: confirmed.signal });
  });
  try {
    return await Promise.race([command.ended, lost]);
  } finally {
    clearInterval(watching);
    stopListening();
    clearTimeout(last);
    confirmed.abort();
  }
}

const unexpected: ErrorCodes = { code: "UNEXPECTED", exitCode: exitCode("unexpected") };

const spawnFaults: Readonly<Record<string, string>> = {
  ENOENT: "command not found",
  EACCES: "permission denied",
};

function conclude(
  ending: Ending | undefined,
  lease: Lease,
  request: RunRequest,
  signals: SignalRelay,
  stalls: Stalls,
): number {
  const { resource } = lease;
  const { print } = request;
  const lost = { code: "LEASE_LOST", exitCode: request.lostExitCode };
  if (ending === undefined) {
    print(
      `the lease on ${resource} is lost, and the command could not be ended within ${formatDuration(LOST_CONFIRM_MS)}`,
      lost,
    );
    return lost.exitCode;
  }
  const isStarted = ending.kind === "ended" || (ending.kind === "unguarded" && ending.isKilled);
  if (ending.kind === "no-guard") throw ending.error;
  // A signal to a whole service also reaches the guard and the gate, which handle signals a little later than
  // this process.
  if (!isStarted && signals.exitCode !== undefined) return signals.exitCode;
  if (ending.kind === "not-started") {
    const isMissing = ending.code === "ENOENT";
    const exit = exitCode(isMissing ? "notFound" : "notExecutable");
    const code = isMissing ? "COMMAND_NOT_FOUND" : "COMMAND_NOT_EXECUTABLE";
    print(`${request.command}: ${spawnFaults[ending.code] ?? ending.message}`, { code, exitCode: exit });
    return exit;
  }
  // If this process was stopped meanwhile, the time at which the command ended counts.
  const endedInTime = ending.kind === "ended" && ending.cause === undefined && ending.inTime;
  if (!endedInTime && lease.remaining() <= 0) {
    const { reason } = lease.signal as AbortSignal & { reason: LeaseLostError | undefined };
    print(
      `the lease on ${resource} is lost; the command was ended${reason ? ` (${reason.message})` : ""}`,
      lost,
    );
    return lost.exitCode;
  }
  if (ending.kind === "unguarded") {
    const so = ending.isKilled ? ", so the command was killed" : " before the command was started";
    print(`the guard of the command ended (${ending.how})${so}`, unexpected);
    return unexpected.exitCode;
  }
  if (ending.daemons.length > 0) {
    print(
      `started by the command and left alone, as it moved to a session of its own: ${ending.daemons.join(", ")}; it goes on without the lease`,
    );
  }
  if (ending.cause !== undefined) {
    const stalled =
      stalls.longestMs < lease.ttlMs / STALL_SHARE
        ? ""
        : `: this machine was too busy, run itself stood still for ${shortTime(stalls.longestMs)}`;
    print(
      `the lease on ${resource} could not be renewed in time${stalled}; the command was ended before it ran out`,
      lost,
    );
    return lost.exitCode;
  }
  if (ending.code !== null) return ending.code;
  if (ending.signal !== null) return exitCodeOfSignal(ending.signal);
  print("how the command ended is not known: the shell above it was ended by a signal", unexpected);
  return unexpected.exitCode;
}
