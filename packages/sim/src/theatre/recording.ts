/** A recorded run: its steps in order, and what each left. Times are true time, ms since the run began. */
export interface Recording {
  readonly seed: number;
  /** The assumptions about clocks that hold in the run: one of `clockModes`. */
  readonly mode: string;
  readonly steps: readonly Step[];
  readonly flights: readonly Flight[];
  readonly resources: readonly string[];
  readonly maxClockSkewMs: number;
  readonly traceHash: string;
  /** The violated invariant, and the checker's message. */
  readonly violation:
    | { readonly invariant: string; readonly text: string; readonly atMs: number }
    | undefined;
  /** The step at which the interesting part begins. */
  readonly firstStep: number;
  /** Steps at the beginning of a long run that were not kept. */
  readonly stepsDropped: number;
}

/** One event that changed something visible. */
export interface Step {
  readonly atMs: number;
  /** The event in one plain sentence. */
  readonly text: string;
  /** A step that "next event" stops at. */
  readonly isMain: boolean;
  readonly nodes: readonly NodeState[];
  /** Directions in which nothing arrives, as indices of sender and receiver. */
  readonly cuts: readonly (readonly [from: number, to: number])[];
}

export interface NodeState {
  readonly name: string;
  readonly isMember: boolean;
  readonly life: "down" | "frozen" | "waiting" | "running";
  /** Its wall clock minus true time, ms. */
  readonly clockMs: number;
  /** Its steady clock's rate. */
  readonly rate: number;
  readonly view: string;
  readonly entries: readonly EntryState[];
  readonly claims: readonly ClaimState[];
}

/** A member's memory of a resource. */
export interface EntryState {
  readonly resource: string;
  /** The number of the ballot that it promised. */
  readonly promised: number;
  readonly holder: string;
  readonly isReleased: boolean;
  /** Until this time, by its own clock, the member refuses all others. */
  readonly guardsUntilMs: number;
}

/** A participant's part in a resource. */
export interface ClaimState {
  readonly resource: string;
  readonly doing: "asking" | "writing" | "renewing" | "holding" | "over";
  readonly isHeld: boolean;
  readonly token: number;
  readonly yes: number;
  readonly needed: number;
  /** The end of its lease by its own clocks. */
  readonly untilMs: number;
}

/** One message. */
export interface Flight {
  readonly from: number;
  readonly to: number;
  readonly kind: string;
  readonly resource: string;
  readonly sentMs: number;
  /** Its arrival time. For a lost message: when it disappears from the picture. */
  readonly arrivesMs: number;
  readonly isLost: boolean;
  readonly isRefusal: boolean;
}
