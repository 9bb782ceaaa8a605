/** Guards for untrusted values from JSON text. */

/** Whether the value is a JSON object: neither an array nor null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value if it is an object, otherwise an empty object. */
export function recordOrEmpty(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** The value if it is a string, otherwise an empty string. */
export function textOrEmpty(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Whether the value is a non-negative integer that a double represents exactly. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
