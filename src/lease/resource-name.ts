import { LeaseholdError } from "./errors.js";

/**
 * The longest name of a resource, in bytes of UTF-8: it travels in every message and is a key in every store.
 */
export const resourceNameBytesMax = 512;

/** The longest part of a refused name that a message repeats. */
const quotedCharactersMax = 80;

/**
 * Refuses what can't be the name of a resource: 1 to 512 bytes of UTF-8, no control characters, no lone
 * surrogates (two different names with one could become the same bytes).
 *
 * @throws LeaseholdError `INVALID_NAME`
 */
export function checkResourceName(name: string): void {
  if (name === "") throw invalid(name, "it is empty");
  checkResourcePrefix(name);
}

/** Whether {@link checkResourceName} lets it pass. */
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
  if (typeof prefix !== "string") throw invalid(String(prefix), "it is not text");
  // No character of a string is shorter than one byte: what is longer than the limit needs no counting.
  const bytes = prefix.length > resourceNameBytesMax ? prefix.length : countBytes(prefix);
  if (bytes > resourceNameBytesMax) {
    throw invalid(prefix, `it is longer than ${resourceNameBytesMax} bytes`);
  }
}

/** Length in UTF-8, without allocating; refuses on the way what has no place in a name. */
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
