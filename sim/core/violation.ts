/** What must hold of the consistent core. Their meaning is in the checkers, one a file. */
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
  "range",
  "turn",
  "progress",
] as const;
export type CoreInvariant = (typeof coreInvariants)[number];

export interface CoreViolation {
  readonly invariant: CoreInvariant;
  /** True time in the run. */
  readonly atMs: number;
  readonly event: number;
  readonly text: string;
}

/** Thrown where a checker finds something wrong: it ends the run. */
export class CoreViolationError extends Error {
  readonly invariant: CoreInvariant;

  constructor(invariant: CoreInvariant, text: string) {
    super(text);
    this.name = "CoreViolationError";
    this.invariant = invariant;
  }
}

/** Violations of these are a lack of progress; of the others, a lack of safety. */
export const coreLivenessInvariants: ReadonlySet<CoreInvariant> = new Set(["expiry", "progress"]);
