import { LeaseholdError } from "leasehold/common";
import { nodesMax } from "./nodes.js";
import type { AttributeChanges, Attributes } from "./types.js";

/** The most attributes of one name, and the most bytes of their names and values together, in UTF-8. */
export const attributesMax = 64;
export const attributeBytesMax = 8 * 1024;

/**
 * Attributes with this prefix describe the content: a name loses them when it gets another content. All other
 * attributes stay with the name.
 */
const ofContent = "content.";

/**
 * The attribute of a folder that sets how many nodes store each of its files. It applies to the folders
 * below, unless they have their own.
 */
export const copiesAttribute = "leasehold.copies";

/** Undefined if the attributes don't set it. */
export function copiesIn(attributes: Attributes | undefined): number | undefined {
  const copies = Number(attributes?.[copiesAttribute]);
  return Number.isInteger(copies) && copies >= 1 && copies <= nodesMax ? copies : undefined;
}

const encoder = new TextEncoder();

/** The attributes that a name keeps when it gets another content. */
export function withoutContent(attributes: Attributes | undefined): Attributes | undefined {
  return attributes && someOf(Object.entries(attributes).filter(([name]) => !name.startsWith(ofContent)));
}

/** @throws LeaseholdError `INVALID_RANGE` if there would be too many */
export function changeAttributes(
  before: Attributes | undefined,
  changes: AttributeChanges | undefined,
): Attributes | undefined {
  if (changes === undefined) return before;
  const all = new Map<string, string | null>(Object.entries(before ?? {}));
  for (const [name, value] of Object.entries(changes)) all.set(name, value);
  const kept = [...all].filter((each): each is [string, string] => each[1] !== null);
  checkAttributes(kept);
  return someOf(kept);
}

/** The upper bound of the attributes' length in a record. */
export function attributeBytes(attributes: Attributes | undefined): number {
  return attributes === undefined ? 0 : 3 * JSON.stringify(attributes).length;
}

function checkAttributes(all: readonly (readonly [name: string, value: string])[]): void {
  const bytes = all.reduce((sum, [name, value]) => sum + lengthOf(name) + lengthOf(value), 0);
  if (all.length > attributesMax || !(bytes <= attributeBytesMax))
    throw new LeaseholdError(
      "INVALID_RANGE",
      `a name has at most ${attributesMax} attributes of ${attributeBytesMax} bytes together, and not ${all.length} of ${bytes}`,
    );
}

function lengthOf(text: unknown): number {
  return typeof text === "string" ? encoder.encode(text).length : NaN;
}

function someOf(all: readonly (readonly [string, string])[]): Attributes | undefined {
  return all.length === 0 ? undefined : Object.fromEntries(all);
}
