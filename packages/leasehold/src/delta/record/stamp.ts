/** The paper's timestamp: no two writes ever have the same, and any two are ordered. */
export interface Stamp {
  /** One more than the greatest number that the writer had read. */
  readonly number: bigint;
  readonly writer: string;
  /** A counter of that writer's writes. */
  readonly nonce: number;
}

/**
 * Negative when `a` is earlier, 0 when both are the same write. `undefined`, never written, comes before all.
 */
export function compareStamps(a: Stamp | undefined, b: Stamp | undefined): number {
  if (a === undefined || b === undefined) return (a === undefined ? 0 : 1) - (b === undefined ? 0 : 1);
  if (a.number !== b.number) return a.number < b.number ? -1 : 1;
  if (a.writer !== b.writer) return a.writer < b.writer ? -1 : 1;
  return a.nonce - b.nonce;
}

export function sameStamp(a: Stamp | undefined, b: Stamp | undefined): boolean {
  return compareStamps(a, b) === 0;
}

export function later<Value extends Stamp>(a: Value | undefined, b: Value | undefined): Value | undefined {
  return compareStamps(a, b) < 0 ? b : a;
}
