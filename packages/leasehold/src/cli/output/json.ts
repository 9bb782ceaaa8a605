/**
 * Tokens do not fit into a JSON number, so they are written as decimal strings, as everywhere in Leasehold.
 */
export function toJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(
    value,
    (_key, inner: unknown) => (typeof inner === "bigint" ? String(inner) : inner),
    indent,
  );
  // JSON allows these characters unescaped, but terminals interpret some of them.
  return text.replaceAll(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
