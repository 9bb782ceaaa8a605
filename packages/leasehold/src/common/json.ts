/** Guards for values that came out of JSON text: nothing is known of them. */

/** True for what JSON calls an object: no list, and not null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object, or an empty one for anything else. */
export function recordOrEmpty(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** The text, or an empty one for anything else. */
export function textOrEmpty(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** True for a whole number from 0 on that a double holds exactly. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
