/**
 * The lines of a journal. Every process of a run keeps its own journal: one JSON object per line, each
 * written with one synchronous write, so that a killed process loses none. `docs/internals/histories.md`
 * describes the format.
 *
 * Stamps are nanoseconds on one steady clock that all processes share (`process.hrtime.bigint()` on one
 * machine). Stamps and tokens are decimal strings in a journal, because JSON numbers are not exact enough.
 */

/** The version of the format that this build reads and writes. */
export const historyVersion = 1;

/** Steady time in nanoseconds. */
export type Nanoseconds = bigint;

/** The first line of every journal, which says what it belongs to. */
export interface HistoryHeader {
  readonly event: "history";
  readonly version: typeof historyVersion;
  /** The run; the same in all of its journals, and unique. */
  readonly run: string;
  /**
   * The clock of the stamps. Journals with different clocks cannot be compared. See
   * `docs/internals/histories.md`.
   */
  readonly clock: string;
  /** The writer of this journal; unique within a run. */
  readonly by: string;
}

/**
 * How a tenure is held, if not exclusively. Without these fields, the lease excludes all others on its
 * resource. They are the same in all lines of a tenure.
 */
export interface TenureForm {
  /** `shared`: together with other shared tenures. `exclusive` or absent: alone. */
  readonly mode?: TenureMode | undefined;
  /**
   * The counted lease whose slot `resource` is. The number of concurrent holders in one pool is at most the
   * greatest `limit` among them.
   */
  readonly pool?: string | undefined;
  /** With `pool`: the limit of the call that acquired this tenure; a whole number of 1 or more. */
  readonly limit?: number | undefined;
}

export type TenureMode = "shared" | "exclusive";

/** The tenure that an entry is about. */
export interface TenureId extends TenureForm {
  /** The holder's process. */
  readonly pid: number;
  /** The holder's name and incarnation. */
  readonly incarnation: string;
  readonly resource: string;
  readonly token: bigint;
}

/** One look at a lease: at an instant between `m1` and `m2`, the lease answered whether it was held. */
export interface Sample extends TenureId {
  readonly event: "sample";
  /** The clock before and after the look. */
  readonly m1: Nanoseconds;
  readonly m2: Nanoseconds;
  readonly ok: boolean;
  /** The remaining time that the lease reported, in ms; 0 if it is not held. */
  readonly remainingMs: number;
}

/**
 * `release`: written before the release. `lost`: the program was notified of a loss; this is counted, but
 * never used as a proof.
 */
export interface Ending extends TenureId {
  readonly event: "release" | "lost";
  readonly m: Nanoseconds;
}

/**
 * One operation on the guarded resource, written by the requesting process once the answer has arrived or can
 * no longer arrive.
 */
export interface Operation extends TenureId {
  readonly event: "op";
  /** The clock before the request was sent, and after the answer arrived. */
  readonly m1: Nanoseconds;
  readonly m2: Nanoseconds;
  readonly result: "accepted" | "refused" | "unknown";
}

/**
 * A decision of the guarded resource, in the resource's own journal. `m` is the clock after the decision and
 * before the answer is sent. All decisions of one resource are in one journal.
 */
export interface Decision {
  readonly event: "accepted" | "refused";
  readonly m: Nanoseconds;
  readonly resource: string;
  readonly token: bigint;
  /**
   * The mode of the token's tenure. The token of a `shared` one is compared only with those of exclusive
   * ones.
   */
  readonly mode?: TenureMode | undefined;
  /** Counts the decisions of this resource, in order; each is greater than the previous one. */
  readonly order: number;
}

/**
 * An event of a process, written by that process: it started, it can serve, or its clock has raised an alarm.
 */
export interface Moment {
  readonly event: "boot" | "ready" | "alarm";
  readonly m: Nanoseconds;
  readonly pid: number;
}

/** An error that a process survived. */
export interface Trouble {
  readonly event: "trouble";
  readonly m: Nanoseconds;
  readonly pid: number;
  readonly code: string;
  readonly message: string;
}

/**
 * A signal to a process, written by the process that sent it: `killed` and `stopped` after it, `continued`
 * before it. A kill is a fault of the kind `killed`; a stop, up to the continuation, is one of the kind
 * `stopped`. Neither needs fault marks.
 */
export interface Intervention {
  readonly event: "killed" | "stopped" | "continued";
  readonly m: Nanoseconds;
  /** The target process. */
  readonly pid: number;
}

/** Any other fault, written by the process that injects it: before it begins, and after it has ended. */
export interface FaultMark {
  readonly event: "fault";
  readonly m: Nanoseconds;
  readonly phase: "begin" | "end";
  /** For example `cut`, `one-way-cut`, `clock-step`; the report has a row for each kind. */
  readonly kind: string;
  /** The target; `end` names the same kind and target as `begin`. */
  readonly target: string;
}

/** Any line of a journal except the first. */
export type HistoryEntry =
  | Sample
  | Ending
  | Operation
  | Decision
  | Moment
  | Trouble
  | Intervention
  | FaultMark;

/**
 * A line of a journal, with its newline, which has to be written with one synchronous write.
 *
 * @example
 * ```ts
 * import { historyLine } from "leasehold/testing";
 *
 * historyLine({ event: "boot", m: 17n, pid: 4711 }); // {"event":"boot","m":"17","pid":4711}
 * ```
 */
export function historyLine(entry: HistoryHeader | HistoryEntry): string {
  const text = JSON.stringify(entry, (_key, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  return `${text}\n`;
}

/** The earliest time at which the line can have been written. The lines of a journal are in this order. */
export function stampOf(entry: HistoryEntry): Nanoseconds {
  return "m2" in entry ? entry.m2 : entry.m;
}
