import { LeaseholdError } from "./errors.js";
import type { JsonValue } from "./json-value.js";

/**
 * The limit of a tenure's data, in bytes of its JSON text: it is stored with every lease, in stores whose
 * cells hold a few kilobytes, and sent with every answer about it.
 */
export const dataBytesMax = 1_024;

/** JSON within the limit can't be nested deeper: each level takes two bytes. */
const depthMax = dataBytesMax / 2;

/** How much of a name in the data an error message quotes. */
const quotedCharactersMax = 40;

const encoder = new TextEncoder();

/**
 * The data of a tenure as the text that grounds store with its lease. Data that JSON would change or drop is
 * refused, since readers would see something else.
 *
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function dataText(data: unknown): string {
  const flaw = flawOf(data, "data", 0);
  if (flaw !== undefined) throw new LeaseholdError("INVALID_CONFIG", flaw);
  const text = JSON.stringify(data);
  const bytes = encoder.encode(text).length;
  if (bytes <= dataBytesMax) return text;
  throw new LeaseholdError(
    "INVALID_CONFIG",
    `data: ${bytes} bytes of JSON where ${dataBytesMax} are allowed; store longer data elsewhere`,
  );
}

/** The number of bytes that {@link withData} adds. */
export function dataFieldBytes(data: string): number {
  return encoder.encode(`,"data":${data}`).length;
}

/** A record's JSON with the data as its last field: nested JSON, so that people can read both. */
export function withData(json: string, data: string | undefined): string {
  return data === undefined ? json : `${json.slice(0, -1)},"data":${data}}`;
}

/** The text of the data in a record; `undefined` for data that {@link dataText} would refuse. */
export function dataIn(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  try {
    return dataText(value);
  } catch {
    return undefined;
  }
}

/**
 * The data that a holder left with its lease, as a field of a hint. Nobody has verified it: data that is too
 * long, or not written by {@link dataText}, is left out.
 */
export function dataField(text: unknown): { readonly data?: JsonValue } {
  return typeof text === "string" ? (parsed(text) ?? {}) : {};
}

function parsed(text: string): { readonly data: JsonValue } | undefined {
  // A character has at least one byte, so text longer than the limit needs no counting.
  if (text.length > dataBytesMax || encoder.encode(text).length > dataBytesMax) return undefined;
  try {
    const data = JSON.parse(text) as JsonValue;
    if (flawOf(data, "data", 0) !== undefined || JSON.stringify(data) !== text) return undefined;
    return { data };
  } catch {
    return undefined;
  }
}

/** Why a value can't be the data of a tenure: a sentence that names the place, or `undefined`. */
function flawOf(value: unknown, place: string, depth: number): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number")
    return Number.isFinite(value) ? undefined : `${place}: JSON has no ${String(value)}`;
  if (typeof value !== "object") return `${place}: JSON has no ${typeof value}`;
  if (depth >= depthMax) return `data: it refers to itself, or is nested deeper than ${depthMax} levels`;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const flaw = flawOf(value[index], `${place}[${index}]`, depth + 1);
      if (flaw !== undefined) return flaw;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    return `${place}: JSON carries plain objects, arrays, text, numbers, booleans and null`;
  for (const [name, inner] of Object.entries(value)) {
    const at = `${place}.${name.slice(0, quotedCharactersMax)}`;
    // A program that copies the fields of the data would give its copy another prototype.
    if (name === "__proto__") return `${at}: this name has a meaning of its own in JavaScript`;
    const flaw = flawOf(inner, at, depth + 1);
    if (flaw !== undefined) return flaw;
  }
  return undefined;
}
