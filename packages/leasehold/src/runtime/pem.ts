import { readFile } from "node:fs/promises";
import { LeaseholdError } from "../lease/errors.js";

/** The maximum size, more than any certificate, key or chain needs. */
const fileBytesMax = 1024 * 1024;

/** Every PEM text contains this; no path does. */
export function isPem(text: string): boolean {
  return text.includes("-----BEGIN ");
}

/**
 * The content of a PEM file, or the text itself.
 *
 * Rejects with a `LeaseholdError` `INVALID_CONFIG`.
 */
export async function textOf(pathOrPem: string): Promise<string> {
  if (isPem(pathOrPem)) return pathOrPem;
  try {
    const text = await readFile(pathOrPem, "utf8");
    if (text.length > fileBytesMax) throw new Error("the file is too large");
    return text;
  } catch (cause) {
    const why = `cannot read ${pathOrPem.slice(0, 200)}: ${(cause as Error).message}`;
    throw new LeaseholdError("INVALID_CONFIG", why, { cause });
  }
}
