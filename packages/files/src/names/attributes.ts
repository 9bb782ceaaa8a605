import { LeaseholdError } from "leasehold/common";
import { nodesMax } from "./nodes.js";
import type { AttributeChanges, Attributes } from "./types.js";

/** Attributes of one name, and the bytes of their names and values in UTF-8. */
export const attributesMax = 64;
export const attributeBytesMax = 8 * 1024;

/**
 * Attributes whose names begin like this describe the content: another content of the name begins without
 * them. All others stay with the name.
 */
const ofContent = "content.";

/** The attribute of a folder: on how many nodes the files in it are, and in its folders without one. */
export const copiesAttribute = "leasehold.copies";

/** Undefined if the attributes say nothing. */
export function copiesIn(attributes: Attributes | undefined): number | undefined {
  const copies = Number(attributes?.[copiesAttribute]);
  return Number.isInteger(copies) && copies >= 1 && copies <= nodesMax ? copies : undefined;
}

const encoder = new TextEncoder();

/** The attributes of a name that gets another content. */
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

/** The upper bound of their length in a record. */
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
