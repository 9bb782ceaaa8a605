const removed = "[removed]";

const secretName = String.raw`(?:pass(?:word|wd|phrase)?|secret|credentials?|api[-_]?key|access[-_]?key|(?:access|api|auth|refresh|session)[-_]?token|private[-_]?key|cluster[-_]?key|cookie|signature)`;

/** Patterns of secrets, in this order. Repetitions are bounded, because a line may have a megabyte. */
const forms: readonly (readonly [RegExp, string])[] = [
  // The file may have been cut off within a key.
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, removed],
  [/^[^]*-----END [A-Z ]*PRIVATE KEY-----/, removed],
  // In an address, name:password@host. A password may contain an unescaped @ or /.
  [/(:\/\/[^\s/@:"']*):[^\s"']{0,512}@/g, `$1:${removed}@`],
  // Tokens elsewhere are fencing tokens, which are not secret.
  [/([?&](?:token|sig)=)[^\s"'&]+|\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, `$1${removed}`],
  [/\b(Bearer|Basic|Digest)\s+[^\s"',;]+/gi, `$1 ${removed}`],
  [
    new RegExp(String.raw`(${secretName}[\w-]{0,64}(?:\\?["'])?\s*[:=]\s*)(?:\\?["'])?[^\s"',;&}\\]+`, "gi"),
    `$1${removed}`,
  ],
  [
    /\b(authorization(?:\\?["'])?\s*[:=]\s*)(?!(?:\\?["'])?(?:Bearer|Basic|Digest)\b)[^\s,;}]+/gi,
    `$1${removed}`,
  ],
  // A cluster key has 64 digits or more; hashes in states and logs have 32.
  [/(?<![0-9a-f])[0-9a-f]{48,}(?![0-9a-f])/gi, removed],
];

/**
 * The text without anything that looks like a secret (private keys, cluster keys, passwords in addresses,
 * values of names such as `password`) and without texts that are known to be secret.
 */
export function redacted(text: string, secrets: Iterable<string> = []): string {
  const known = [...secrets].filter((secret) => secret.length > 3).sort((a, b) => b.length - a.length);
  const without = known.reduce((rest, secret) => rest.replaceAll(secret, removed), text);
  return forms.reduce(
    (rest, [form, by]) => rest.replaceAll(form.global ? form : new RegExp(form, "g"), by),
    without,
  );
}

/** The value with all its texts redacted, and without the values of names that mark a secret. */
export function redactedValue(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === "string") return redacted(value, secrets);
  if (Array.isArray(value)) return value.map((each) => redactedValue(each, secrets));
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, inner]) => {
    const isSecret = typeof inner === "string" && secretField.test(name);
    return [redacted(name, secrets), isSecret ? removed : redactedValue(inner, secrets)];
  });
  return Object.fromEntries(fields) as object;
}

const secretField = new RegExp(secretName, "i");
