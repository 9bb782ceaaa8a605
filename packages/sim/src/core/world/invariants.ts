import type { Report } from "../../kit/violation.js";

/** The invariants of the consistent core. Their meaning is in the checkers, one a file. */
export const coreInvariants = [
  "agreement",
  "durability",
  "linearizability",
  "lease-life",
  "lease-keys",
  "lease-names",
  "refresh",
  "expiry",
  "watch",
  "space",
  "rights",
  "range",
  "turn",
  "membership",
  "restored",
  "undisturbed",
  "progress",
  "answered",
  "exclusion",
  "counted",
  "tokens",
  "line",
  "aftermath",
  "served",
] as const;
export type CoreInvariant = (typeof coreInvariants)[number];

/** The violations that count as a lack of progress; all others are a lack of safety. */
export const coreLivenessInvariants: ReadonlySet<string> = new Set<CoreInvariant>([
  "expiry",
  "progress",
  "answered",
  "undisturbed",
  "aftermath",
  "served",
]);

export type CoreReport = Report<CoreInvariant>;
