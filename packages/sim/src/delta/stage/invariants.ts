/** The invariants on shared storage. Their meaning is in the checkers, one a file. */
export const storageInvariants = [
  "exclusion",
  "counted",
  "renewal",
  "progress",
  "leader",
  "agreement",
  "decision",
  "regularity",
  "no-flicker",
  "tokens",
  "guard",
  "one-farm",
  "readmission",
  "broken",
  "adoption",
] as const;
export type StorageInvariant = (typeof storageInvariants)[number];

/** Violations of these are a lack of progress; of the others, a lack of safety. */
export const livenessInvariants: ReadonlySet<string> = new Set<StorageInvariant>([
  "progress",
  "leader",
  "decision",
  "readmission",
]);
