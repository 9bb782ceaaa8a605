import type { Reading } from "./clock.js";
import { LeaseState } from "./message.js";
import type { Message } from "./message.js";
import type { FleaseSettings } from "./settings.js";

/**
 * The three questions about time on which exclusion rests. Each uses a single reading of the clock (repair
 * F4) and both clocks of it, so that exclusion survives the failure of either clock's assumption. A lease's
 * `until` is its end on the wall clock, its `end` the one on the steady clock.
 */

/**
 * At an acceptor: is another owner's lease over? Only when past the safety period ε on the wall clock *and*
 * past its length on the steady clock (Algorithm 3, the test against `now - ε`, with repairs F5 and F6).
 */
export function leaseIsOver(until: number, end: number, now: Reading, settings: FleaseSettings): boolean {
  const wallOver = now.lo >= until + settings.maxClockSkewMs;
  const steadyOver = now.mono >= end;
  return wallOver && steadyOver;
}

/**
 * At a holder: is its own lease still valid? Only while neither clock says that it may have ended (3.6,
 * repair F9), and never when the clocks disagree: a process that was stopped or suspended in between cannot
 * tell how late it is.
 */
export function holdIsValid(until: number, end: number, now: Reading): boolean {
  const onWall = now.hi < until && !now.clocksDisagree;
  return onWall && now.mono < end;
}

/** Milliseconds until `holdIsValid` turns false without a renewal; 0 when it has. */
export function validForMs(until: number, end: number, now: Reading): number {
  if (!holdIsValid(until, end, now)) return 0;
  return Math.max(0, Math.min(until - now.hi, end - now.mono));
}

/**
 * At a proposer that reads: does the reported lease leave the resource free? Yes if it was released, if it is
 * over according to both the acceptor and this proposer's clock, or if it is the proposer's own, which it
 * need not wait for (F7).
 */
export function reportedLeaseIsFinished(
  reply: Message,
  owner: string,
  now: Reading,
  settings: FleaseSettings,
): boolean {
  if (reply.leaseState === LeaseState.none || reply.leaseOwner === owner) return true;
  if (reply.leaseState === LeaseState.released) return true;
  if (reply.leaseState === LeaseState.live) return false;
  return now.lo >= reply.leaseExpiresWallMs + settings.maxClockSkewMs;
}
