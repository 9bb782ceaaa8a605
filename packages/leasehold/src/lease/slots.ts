import { LeaseholdError } from "./errors.js";
import { checkResourceName } from "./resource-name.js";

/** The greatest `limit`: a waiting caller waits for every slot at once. */
export const limitMax = 64;

/** Separates a name from the number of its slot. */
export const slotMark = "/~";

/**
 * The suffix of names with readers and a writer; no other name has them. The form is part of the name, so
 * that every call agrees on it: one without `mode` is a writer.
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
 * The slots of a name: a counted lease of n is an exclusive lease on one of them. Slot 0 is the name itself,
 * so that a call without a limit is one with the limit 1; the others have names that no program can give.
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
 * Refuses the names of slots.
 *
 * @throws LeaseholdError `INVALID_NAME`
 */
export function refuseSlotName(name: string): void {
  const at = suffixOf(name);
  if (at < 0) return;
  const suffix = JSON.stringify(name.slice(at));
  throw new LeaseholdError(
    "INVALID_NAME",
    `a name can't end with ${suffix}: that suffix marks a slot of a counted lease; acquire the name before it, with a limit`,
  );
}

/** The number of the slot that has this name; 0 for an ordinary name. */
export function slotNumber(name: string): number {
  const at = suffixOf(name);
  return at < 0 ? 0 : Number(name.slice(at + slotMark.length));
}

/**
 * Where `/~` and a number begin at the end of a name, or -1. It runs for every lease, so it allocates
 * nothing.
 */
function suffixOf(name: string): number {
  let at = name.length;
  while (isDigit(name.charCodeAt(at - 1))) at -= 1;
  return at < name.length && name.startsWith(slotMark, at - slotMark.length) ? at - slotMark.length : -1;
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}
