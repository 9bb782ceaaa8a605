/** Guards for untrusted values from JSON text. */

/** Whether the value is a JSON object: neither an array nor null. */
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

/** Whether the value is a whole number of 0 or more that a double represents exactly. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
