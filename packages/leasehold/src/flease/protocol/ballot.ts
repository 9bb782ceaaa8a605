/**
 * Ballots, the total order of attempts (section 3.3). A ballot is (N, owner); the order is by the integer N
 * alone, so it is transitive (repair F3), and two ballots with equal N and different owners do not supersede
 * each other.
 */

/** 2020-01-01 UTC, so that N stays below 2^53 until 2089. */
const epochMs = 1_577_836_800_000;

/** Ballot numbers per millisecond. */
export const ballotsPerMs = 4096;

/** The smallest ballot number of the millisecond in which the wall clock shows `wallMs`. */
export function numberAt(wallMs: number): number {
  return Math.floor(wallMs - epochMs) * ballotsPerMs;
}

/** The wall-clock time of a ballot number; for display only. */
export function timeOf(number: number): number {
  return Math.floor(number / ballotsPerMs) + epochMs;
}

/**
 * The name of one start of a proposer: its node and a random incarnation, unique to that start (repair F13).
 */
export function ownerName(nodeId: string, incarnation: string): string {
  return `${nodeId}.${incarnation}`;
}

/** An owner without its incarnation: the same across restarts. */
export function nodeIdOf(owner: string): string {
  const dot = owner.lastIndexOf(".");
  return dot === -1 ? owner : owner.slice(0, dot);
}

/** Whether an acceptor that promised `promised` may accept `number` (net B). */
export function supersedes(number: number, owner: string, promised: number, promisedOwner: string): boolean {
  if (number === promised && owner === promisedOwner) return true;
  return number > promised;
}
