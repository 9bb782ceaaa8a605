import { getOrInsert } from "../../../common/maps.js";
import type { Intervention, Nanoseconds } from "./format.js";
import { compare } from "./nanoseconds.js";

/** A time during which a process could not run. */
export interface Halt {
  readonly kind: "killed" | "stopped";
  readonly pid: number;
  readonly from: Nanoseconds;
  /** Equal to `from` for a kill; `undefined` for a process that was never continued. */
  readonly to: Nanoseconds | undefined;
}

/** Signals to processes, collected from journals in any order. */
export class InterventionLog {
  readonly #interventions: Intervention[] = [];

  add(intervention: Intervention): void {
    this.#interventions.push(intervention);
  }

  /** The times at which each process was continued. */
  continuations(): Map<number, Nanoseconds[]> {
    const byPid = new Map<number, Nanoseconds[]>();
    for (const { event, pid, m } of this.#interventions) {
      if (event === "continued") getOrInsert(byPid, pid, () => []).push(m);
    }
    return byPid;
  }

  halts(): Halt[] {
    const halts: Halt[] = [];
    const stoppedAt = new Map<number, Nanoseconds>();
    for (const { event, pid, m } of this.#interventions.toSorted((one, other) => compare(one.m, other.m))) {
      const from = stoppedAt.get(pid);
      if (event === "stopped") {
        stoppedAt.set(pid, from ?? m);
        continue;
      }
      if (from !== undefined) halts.push({ kind: "stopped", pid, from, to: m });
      stoppedAt.delete(pid);
      if (event === "killed") halts.push({ kind: "killed", pid, from: m, to: m });
    }
    for (const [pid, from] of stoppedAt) halts.push({ kind: "stopped", pid, from, to: undefined });
    return halts;
  }
}
