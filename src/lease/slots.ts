import { LeaseholdError } from "./errors.js";
import { checkResourceName } from "./resource-name.js";

/** The greatest `limit`: a caller that waits does so at every slot at once. */
export const limitMax = 64;

/** Stands between a name and the number of its slot. */
export const slotMark = "/~";

/**
 * Names that end so have readers and a writer, and no other name has. The form is part of the name, so that
 * every call of it knows: a call that says nothing is a writer.
 */
export const sharedMark = "/~rw";

export function isSharedName(name: string): boolean {
  return name.endsWith(sharedMark);
}

/** Slot 0 is the name itself. */
export function slotName(name: string, slot: number): string {
  return slot === 0 ? name : `${name}${slotMark}${slot}`;
}

/**
 * A counted lease of n is an exclusive lease on one of n resources, its slots. Slot 0 is the name itself, so
 * that a call without a limit is one with the limit 1; the others have names that no program can give.
 *
 * @throws LeaseholdError `INVALID_CONFIG`; `INVALID_NAME` when the names of its slots would be too long
 */
export function slotNames(name: string, limit: number): string[] {
  if (!Number.isInteger(limit) || limit < 1 || limit > limitMax) {
    const given = typeof limit === "number" ? String(limit) : typeof limit;
    throw new LeaseholdError("INVALID_CONFIG", `limit: a whole number from 1 to ${limitMax}, not ${given}`);
  }
  const names = Array.from({ length: limit }, (_, slot) => slotName(name, slot));
  checkResourceName(names[limit - 1]!);
  return names;
}

/**
 * Refuses the names that slots have.
 *
 * @throws LeaseholdError `INVALID_NAME`
 */
export function refuseSlotName(name: string): void {
  const at = suffixOf(name);
  if (at < 0) return;
  const suffix = JSON.stringify(name.slice(at));
  throw new LeaseholdError(
    "INVALID_NAME",
    `no name ends with ${suffix}: so end the slots of counted leases; acquire the name before it, with a limit`,
  );
}

/** Which slot the name is of; 0 for a name that is its own. */
export function slotNumber(name: string): number {
  const at = suffixOf(name);
  return at < 0 ? 0 : Number(name.slice(at + slotMark.length));
}

/** Where `/~` and a number begin at the end of a name; -1 without. For every lease, so it makes nothing. */
function suffixOf(name: string): number {
  let at = name.length;
  while (isDigit(name.charCodeAt(at - 1))) at -= 1;
  return at < name.length && name.startsWith(slotMark, at - slotMark.length) ? at - slotMark.length : -1;
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}
