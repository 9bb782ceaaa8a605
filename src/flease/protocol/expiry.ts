import { faults } from "#faults";
import type { Reading } from "./clock.js";
import { LeaseState } from "./message.js";
import type { Message } from "./message.js";
import type { FleaseSettings } from "./settings.js";

/**
 * The three questions about time on which exclusion rests. Each is asked of one reading of the clock (repair F4), and
 * each uses both clocks, so that exclusion survives the failure of either assumption about them.
 */

/**
 * At an acceptor: is another's lease over? Past the safety period ε on the wall clock *and* past its length on the
 * steady clock (Algorithm 3, the test against `now - ε`, with repairs F5 and F6).
 */
export function leaseIsOver(until: number, end: number, now: Reading, settings: FleaseSettings): boolean {
  const wallOver = faults.wallTestOff || now.lo >= until + safetyPeriodMs(settings);
  const steadyOver = faults.rateTestOff || now.mono >= end;
  return faults.overByEitherClock ? wallOver || steadyOver : wallOver && steadyOver;
}

/**
 * At a holder: is the own lease still valid? Only while neither clock says that it may have ended (3.6, repair F9), and
 * never by clocks that disagree: a process that was stopped or suspended meanwhile cannot tell how late it had become.
 */
export function holdIsValid(until: number, end: number, now: Reading): boolean {
  if (faults.holderIgnoresExpiry) return true;
  const onWall = faults.wallTestOff || (now.hi < until && !now.clocksDisagree);
  return onWall && (faults.rateTestOff || now.mono < end);
}

/** Milliseconds until `holdIsValid` turns false, if nothing is renewed; 0 when it has. */
export function validForMs(until: number, end: number, now: Reading): number {
  if (!holdIsValid(until, end, now)) return 0;
  const onWall = faults.wallTestOff ? Infinity : until - now.hi;
  const onSteady = faults.rateTestOff ? Infinity : end - now.mono;
  return Math.max(faults.holderIgnoresExpiry ? 1 : 0, Math.min(onWall, onSteady));
}

/**
 * At a proposer that reads: does the reported lease leave the way free? If it was released, or is over by the
 * acceptor's word and by the own clock; or if it is one's own, for which one need not wait (F7).
 */
export function reportedLeaseIsFinished(
  reply: Message,
  owner: string,
  readAtLo: number,
  now: Reading,
  settings: FleaseSettings,
): boolean {
  if (reply.leaseState === LeaseState.none || reply.leaseOwner === owner) return true;
  const until = reply.leaseUntil;
  if (faults.twoClockReadings) {
    // Algorithm 4 as published: the safety period by one reading of the clock, the take-over by a later one.
    const inSafetyPeriod = readAtLo > until && readAtLo < until + settings.maxClockSkewMs;
    return !inSafetyPeriod && now.lo > until;
  }
  if (reply.leaseState === LeaseState.released && !faults.releasedLeaseBlocksReader) return true;
  if (reply.leaseState === LeaseState.live) return false;
  return faults.wallTestOff || now.lo >= until + safetyPeriodMs(settings);
}

function safetyPeriodMs(settings: FleaseSettings): number {
  if (faults.noSafetyPeriod) return 0;
  return settings.maxClockSkewMs - (faults.safetyPeriodOneTickShort ? 1 : 0);
}
