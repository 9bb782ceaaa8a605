/**
 * The lines of a journal. Every process of a run keeps a journal of its own: one JSON object a line, written
 * with one synchronous write, so that a process that is killed loses none. `docs/internals/histories.md` has
 * the same for people.
 *
 * Stamps are of one steady clock that all processes share (`process.hrtime.bigint()` on one machine), in
 * nanoseconds. Stamps and tokens are decimal strings in a journal, because a JSON number cannot hold them.
 */

/** The version of the format that this build writes and reads. */
export const historyVersion = 1;

/** Steady time in nanoseconds. */
export type Nanoseconds = bigint;

/** First line of every journal: what it belongs to. */
export interface HistoryHeader {
  readonly event: "history";
  readonly version: typeof historyVersion;
  /** Which run; the same in all of its journals, and never again. */
  readonly run: string;
  /**
   * Which clock the stamps are of; two journals with different clocks cannot be compared. See
   * `docs/internals/histories.md`.
   */
  readonly clock: string;
  /** Who writes this journal; no two journals of a run have the same. */
  readonly by: string;
}

/**
 * How a tenure is held, if not alone. What is left out means a lease that excludes all others of its
 * resource. It is the same in all lines of a tenure.
 */
export interface TenureForm {
  /** `shared`: beside others that are shared. `exclusive`, or left out: alone. */
  readonly mode?: TenureMode | undefined;
  /**
   * The counted lease that `resource` is a slot of. At most the greatest `limit` among those who hold slots
   * of one pool hold at once.
   */
  readonly pool?: string | undefined;
  /** With `pool`: at most how many, by the call that got this tenure; a whole number from 1 on. */
  readonly limit?: number | undefined;
}

export type TenureMode = "shared" | "exclusive";

/** Which tenure an entry is about. */
export interface TenureId extends TenureForm {
  /** Process of the holder. */
  readonly pid: number;
  /** Name and incarnation of the holder. */
  readonly incarnation: string;
  readonly resource: string;
  readonly token: bigint;
}

/** One look at a lease: at some instant between `m1` and `m2` the lease said whether it was held. */
export interface Sample extends TenureId {
  readonly event: "sample";
  /** Read before the look, and after it. */
  readonly m1: Nanoseconds;
  readonly m2: Nanoseconds;
  readonly ok: boolean;
  /** What the lease said was left of it, in ms; 0 when it is not held. */
  readonly remainingMs: number;
}

/**
 * `release`: written before the lease is given back. `lost`: the program was told of a loss; counted, never a
 * proof.
 */
export interface Ending extends TenureId {
  readonly event: "release" | "lost";
  readonly m: Nanoseconds;
}

/**
 * One operation on the guarded resource, written by the process that asked for it, when the answer has come
 * or will not come.
 */
export interface Operation extends TenureId {
  readonly event: "op";
  /** Read before the request was sent, and after the answer had come. */
  readonly m1: Nanoseconds;
  readonly m2: Nanoseconds;
  readonly result: "accepted" | "refused" | "unknown";
}

/**
 * What the guarded resource decided, in the resource's own journal. `m` is read after the decision and before
 * the answer is sent. All decisions of one resource are in one journal.
 */
export interface Decision {
  readonly event: "accepted" | "refused";
  readonly m: Nanoseconds;
  readonly resource: string;
  readonly token: bigint;
  /** Of the tenure whose token it is: a `shared` one is compared with those of exclusive ones alone. */
  readonly mode?: TenureMode | undefined;
  /**
   * Counts the decisions of this resource, in the order in which they were made; each is greater than the one
   * before.
   */
  readonly order: number;
}

/**
 * What happened to a process as it saw it itself: it started, it can serve, its clock has raised an alarm.
 */
export interface Moment {
  readonly event: "boot" | "ready" | "alarm";
  readonly m: Nanoseconds;
  readonly pid: number;
}

/** An error that a process met with and went on after. */
export interface Trouble {
  readonly event: "trouble";
  readonly m: Nanoseconds;
  readonly pid: number;
  readonly code: string;
  readonly message: string;
}

/**
 * What was done to a process, written by the process that did it: `killed` and `stopped` after it was done,
 * `continued` before. A kill is a fault of the kind `killed`, and a stop until it is continued one of the
 * kind `stopped`; they need no fault marks.
 */
export interface Intervention {
  readonly event: "killed" | "stopped" | "continued";
  readonly m: Nanoseconds;
  /** The process that it was done to. */
  readonly pid: number;
}

/** Any other fault, written by the process that makes it: before it begins, and after it has ended. */
export interface FaultMark {
  readonly event: "fault";
  readonly m: Nanoseconds;
  readonly phase: "begin" | "end";
  /** Such as `cut`, `one-way-cut`, `clock-step`; the report has a row for each kind. */
  readonly kind: string;
  /** What it is done to; `end` names the same kind and target as `begin`. */
  readonly target: string;
}

/** Any line of a journal but the first. */
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
 * One line of a journal, with its newline: to be written with one synchronous write.
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

/**
 * When a line was written, at the earliest. The lines of a journal are in this order.
 */
export function stampOf(entry: HistoryEntry): Nanoseconds {
  return "m2" in entry ? entry.m2 : entry.m;
}
