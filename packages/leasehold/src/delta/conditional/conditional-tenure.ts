import type { Cell } from "../cell.js";
import { Tenure } from "../tenure.js";
import type { Hold } from "../tenure.js";

/**
 * A tenure of the conditional lease, with the assumed content of each cell, which the next write expects
 * there.
 */
export class ConditionalTenure extends Tenure {
  /** By store index; `undefined` where nothing is known. A wrong assumption costs a round, never more. */
  readonly cells: (Cell | undefined)[];
  /** The record's `number` at the last write. */
  number: bigint;
  /**
   * The greatest Δ that it ever wrote. A record with a smaller one could be considered over while an earlier
   * record with a longer Δ still counted.
   */
  leaseMsMax: number;
  /** The public data, as JSON. */
  data: string | undefined;

  constructor(resource: string, token: bigint, hold: Hold, number: bigint, cells: (Cell | undefined)[]) {
    super(resource, token, hold);
    this.number = number;
    this.leaseMsMax = hold.leaseMs;
    this.cells = cells;
  }
}
