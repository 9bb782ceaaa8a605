import { CountedCells, DecidedViews } from "./views.js";
import type { Hold, Observer, FleaseReport, WorldView } from "../stage/observer.js";
import type { Entry } from "leasehold/inner/flease/protocol/entries/entry.js";
import type { View } from "leasehold/inner/flease/views/view.js";
import type { NodeView } from "../stage/node.js";

/** Steady clocks are compared through true time; this much is rounding. */
const roundingMs = 0.01;

/**
 * I4: every holder is guarded. In the view in which the lease was decided there is a quorum whose acceptors,
 * if they are ready, keep the lease at least as long as the holder relies on it, by the wall clock. By the
 * steady clock there is such a quorum too, perhaps another one.
 */
export class QuorumBacked implements Observer {
  readonly #view: WorldView;
  readonly #report: FleaseReport;
  readonly #cells: CountedCells;
  readonly #decided = new DecidedViews();

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#report = report;
    this.#cells = new CountedCells(view);
  }

  looked(resource: string, holds: readonly Hold[]): void {
    for (const hold of holds) if (hold.valid) this.#check(resource, hold);
  }

  #check(resource: string, hold: Hold): void {
    const { view } = this.#decided.of(hold);
    const { assumptions } = this.#view;
    const who = `${hold.node.name}'s hold of ${resource}`;
    const byWall = this.#isGuarded(view, resource, hold, (_, entry) => {
      return entry.leaseExpiresWallMs >= hold.instance.holdExpiresWallMs;
    });
    if (!byWall) this.#report("I4", `${who} is not guarded by a quorum on the wall clock`);
    if (!assumptions.rate) return;
    const bySteady = this.#isGuarded(view, resource, hold, (member, entry) => {
      return this.#outlastsSteadily(member, entry.leaseExpiresMonoMs, hold);
    });
    if (!bySteady) this.#report("I4", `${who} is not guarded by a quorum on the steady clock`);
  }

  #isGuarded(
    view: View,
    resource: string,
    hold: Hold,
    outlasts: (member: NodeView, entry: Readonly<Entry>) => boolean,
  ): boolean {
    return this.#cells.isQuorum(view, resource, (index) => {
      const member = this.#view.members[index]!;
      const acceptor = member.peer?.acceptor;
      if (acceptor === undefined || !acceptor.ready) return true;
      const entry = acceptor.entry(resource);
      if (entry === undefined || entry.leaseOwner !== hold.node.owner || entry.released) return false;
      return outlasts(member, entry);
    });
  }

  /** Even if the acceptor's clock runs as fast, and the holder's as slowly, as they may. */
  #outlastsSteadily(member: NodeView, leaseExpiresMonoMs: number, hold: Hold): boolean {
    const left = leaseExpiresMonoMs - member.clock.monoAt(this.#view.nowMs);
    const relied = hold.instance.holdExpiresMonoMs - hold.now.mono;
    return left + roundingMs >= relied * (1 + this.#view.settings.mutualRateError);
  }
}
