/** An invariant that did not hold. */
export interface Violation<Invariant extends string = string> {
  readonly invariant: Invariant;
  /** True time in the run. */
  readonly atMs: number;
  /** How many events had happened. */
  readonly event: number;
  readonly text: string;
}

/** Reports a violation. */
export type Report<Invariant extends string> = (invariant: Invariant, text: string) => void;
