import { readBothClocks } from "../../common/both-clocks.js";
import { formatDuration } from "../duration.js";
import { assertAttachable, type Handle, handleOf, handleText, spent } from "../handle.js";
import type { Clock, Random } from "../../common/ports.js";
import type { Grant } from "../provider.js";
import type { Guarantees } from "../types.js";

/**
 * The content of a handle, if it may be attached. This check refuses leases that have already expired by the
 * system clock; the ground decides whether another participant had the resource in between.
 *
 * @throws LeaseholdError `UNSUPPORTED`, `INVALID_HANDLE`, `HANDLE_SPENT`
 */
export function attachable(guarantees: Guarantees, clock: Clock, text: string): Handle {
  assertAttachable(guarantees);
  const handle = handleOf(text, guarantees.ground);
  const overMs = readBothClocks(clock).wallMs - handle.endsWallMs;
  if (overMs >= 0) throw spent(handle.resource, `it expired ${formatDuration(Math.round(overMs))} ago`);
  return handle;
}

/** The handle of a lease that was just detached. */
export function handleFor(grant: Grant, pass: string, { ground }: Guarantees, clock: Clock): string {
  const { resource, token } = grant;
  const endsWallMs = readBothClocks(clock).wallMs + grant.remainingMs();
  return handleText({ ground, resource, token, pass, endsWallMs });
}

/** 32 random bits, as 8 hexadecimal digits. */
function digits(random: Random): string {
  return Math.floor(random.next() * 2 ** 32)
    .toString(16)
    .padStart(8, "0");
}

/**
 * A random pass that identifies a detached lease. It does not protect against participants that can write to
 * the ground.
 */
export function drawPass(random: Random): string {
  return digits(random) + digits(random);
}
