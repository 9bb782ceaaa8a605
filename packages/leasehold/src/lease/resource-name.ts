import { LeaseholdError } from "./errors.js";

/**
 * The longest name of a resource, in bytes of UTF-8: it is part of every message and a key in every store.
 */
export const resourceNameBytesMax = 512;

/** How much of a rejected name an error message quotes. */
const quotedCharactersMax = 80;

/**
 * Refuses an invalid name: it must have 1 to 512 bytes of UTF-8, no control characters, and no lone
 * surrogates (two different names with one could have the same bytes).
 *
 * @throws LeaseholdError `INVALID_NAME`
 */
export function checkResourceName(name: string): void {
  if (name === "") throw invalid(name, "it is empty");
  checkResourcePrefix(name);
}

/** Whether {@link checkResourceName} accepts it. */
export function isResourceName(name: string): boolean {
  try {
    checkResourceName(name);
    return true;
  } catch {
    return false;
  }
}

/** As {@link checkResourceName}, for the beginning of names, which may be empty. */
export function checkResourcePrefix(prefix: string): void {
  if (Array.isArray(prefix)) throw invalid(String(prefix), "it is a list; acquireAll takes several names");
  if (typeof prefix !== "string") throw invalid(String(prefix), "it is not text");
  // A character has at least one byte, so text longer than the limit needs no counting.
  const bytes = prefix.length > resourceNameBytesMax ? prefix.length : countBytes(prefix);
  if (bytes > resourceNameBytesMax) {
    throw invalid(prefix, `it is longer than ${resourceNameBytesMax} bytes`);
  }
}

/** Length in UTF-8, without allocating. Throws at a character that a name can't have. */
function countBytes(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0x20 || (unit >= 0x7f && unit <= 0x9f)) throw invalid(text, "it has a control character");
    if (unit < 0x80) {
      bytes += 1;
    } else if (unit < 0x800) {
      bytes += 2;
    } else if (unit < 0xd800 || unit > 0xdfff) {
      bytes += 3;
    } else {
      const next = text.charCodeAt(index + 1);
      if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff))
        throw invalid(text, "it has half a surrogate pair");
      bytes += 4;
      index += 1;
    }
  }
  return bytes;
}

function invalid(name: string, why: string): LeaseholdError {
  const quoted =
    JSON.stringify(name.slice(0, quotedCharactersMax)) + (name.length > quotedCharactersMax ? "…" : "");
  return new LeaseholdError(
    "INVALID_NAME",
    `${quoted} cannot name a resource: ${why}; a name is 1 to ${resourceNameBytesMax} bytes of UTF-8 without control characters`,
  );
}
