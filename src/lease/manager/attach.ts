import { readBothClocks } from "../../common/both-clocks.js";
import { formatDuration } from "../duration.js";
import { assertAttachable, type Handle, handleOf, handleText, spent } from "../handle.js";
import type { Clock, Random } from "../../common/ports.js";
import type { Grant } from "../provider.js";
import type { Guarantees } from "../types.js";

/**
 * What a handle names, if it may be attached at all. The look at the system clock refuses what has run out
 * for certain as far as clocks agree; that nobody else had the resource in between is for the ground to say.
 *
 * @throws LeaseholdError `UNSUPPORTED`, `INVALID_HANDLE`, `HANDLE_SPENT`
 */
export function attachable(guarantees: Guarantees, clock: Clock, text: string): Handle {
  assertAttachable(guarantees);
  const handle = handleOf(text, guarantees.ground);
  const overMs = readBothClocks(clock).wallMs - handle.endsWallMs;
  if (overMs >= 0) throw spent(handle.resource, `it ran out ${formatDuration(Math.round(overMs))} ago`);
  return handle;
}

/** The handle of a lease that was detached just now. */
export function handleFor(grant: Grant, pass: string, { ground }: Guarantees, clock: Clock): string {
  const { resource, token } = grant;
  const endsWallMs = readBothClocks(clock).wallMs + grant.remainingMs();
  return handleText({ ground, resource, token, pass, endsWallMs });
}

/** 32 bits of a number from 0 to 1, as 8 hexadecimal digits. */
function digits(random: Random): string {
  return Math.floor(random.next() * 2 ** 32)
    .toString(16)
    .padStart(8, "0");
}

/** Tells a detached lease from every other. Who may write to the ground needs none. */
export function drawPass(random: Random): string {
  return digits(random) + digits(random);
}
