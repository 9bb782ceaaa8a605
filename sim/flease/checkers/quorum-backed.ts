import { Cells } from "../../../src/flease/protocol/cells.js";
import type { Hold, Observer, FleaseReport, WorldView } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

/** Steady clocks are compared through true time; this much is rounding. */
const roundingMs = 0.01;

/**
 * I4: every holder is guarded. At a majority of the acceptors of its cell, each is not ready or keeps the
 * lease at least as long as the holder relies on it, by the wall clock; and (perhaps another majority) by the
 * steady clock.
 */
export class QuorumBacked implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;
  readonly #cells: Cells;

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
    this.#cells = new Cells(view.settings.members, view.settings.cellSize);
  }

  looked(resource: string, holds: readonly Hold[]): void {
    for (const hold of holds) if (hold.valid) this.#check(resource, hold);
  }

  #check(resource: string, hold: Hold): void {
    const { members, assumptions } = this.#view;
    const cell = this.#cells.of(resource).members;
    // Counted here again: a mistake in `common/majority.ts` is then not the checker's as well.
    const majority = Math.floor(cell.length / 2) + 1;
    let byWall = 0;
    let bySteady = 0;
    for (const index of cell) {
      const member = members[index]!;
      const acceptor = member.peer?.acceptor;
      if (acceptor === undefined || !acceptor.ready) {
        byWall += 1;
        bySteady += 1;
        continue;
      }
      const entry = acceptor.entry(resource);
      if (entry === undefined || entry.leaseOwner !== hold.node.owner || entry.released) continue;
      if (entry.leaseExpiresWallMs >= hold.instance.holdExpiresWallMs) byWall += 1;
      if (this.#outlastsSteadily(member, entry.leaseExpiresMonoMs, hold)) bySteady += 1;
    }
    const who = `${hold.node.name}'s hold of ${resource}`;
    if (byWall < majority) this.#report("I4", `${who} is guarded by ${byWall} acceptors on the wall clock`);
    if (assumptions.rate && bySteady < majority)
      this.#report("I4", `${who} is guarded by ${bySteady} acceptors on the steady clock`);
  }

  /** Even if the acceptor's clock runs as fast, and the holder's as slowly, as they may. */
  #outlastsSteadily(member: NodeView, leaseExpiresMonoMs: number, hold: Hold): boolean {
    const left = leaseExpiresMonoMs - member.clock.monoAt(this.#view.nowMs);
    const relied = hold.instance.holdExpiresMonoMs - hold.now.mono;
    return left + roundingMs >= relied * (1 + this.#view.settings.mutualRateError);
  }
}
