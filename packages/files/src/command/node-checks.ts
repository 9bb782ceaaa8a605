import type { DiskWait } from "../disk/disk-watch.js";
import type { FilesStatus } from "../types.js";

/** One question about a node, and its answer, for `/readyz`. */
export interface NodeCheck {
  readonly name: string;
  readonly isPassed: boolean;
  readonly detail: string;
}

/** Failures of the disk that a node goes on with, as its store saw the last one. */
export interface DiskFault {
  /** On the steady clock, ms. */
  readonly atMs: number;
  readonly error: string;
}

/** How long a disk counts as failed after a failure, ms: reads and the scrub touch it more often. */
export const faultyMs = 60_000;

/** How long an operation may be under way before the disk counts as one that hangs, ms. */
export const hangingMs = 10_000;

/** Conditions of a node's service. It is alive all the while: a restart repairs no disk and no majority. */
export function nodeChecks(
  { state, majority, peers, rebuilding }: FilesStatus,
  fault: DiskFault | undefined,
  nowMs: number,
  wait: DiskWait | undefined,
): NodeCheck[] {
  const silent = peers.filter(({ reachable }) => !reachable).map(({ node }) => node);
  const joined = state === "serving" || state === "rebuilding";
  return [
    diskCheck(fault, nowMs, wait),
    {
      name: "joined",
      isPassed: joined,
      detail: joined ? state : `${state}: its disk is empty or new, and has not joined the others yet`,
    },
    {
      name: "majority",
      isPassed: majority,
      detail: silent.length === 0 ? "every node answers" : `no answer from ${silent.join(", ")}`,
    },
    {
      name: "copies",
      isPassed: true,
      detail:
        rebuilding === undefined
          ? "complete here"
          : `${rebuilding.left} of ${rebuilding.total} files are still to be copied here`,
    },
  ];
}

function diskCheck(fault: DiskFault | undefined, nowMs: number, wait: DiskWait | undefined): NodeCheck {
  const name = "disk";
  if (wait !== undefined && wait.waitedMs >= hangingMs) {
    const detail = `it hangs: the ${wait.what} has not returned for ${Math.floor(wait.waitedMs / 1_000)} s`;
    return { name, isPassed: false, detail };
  }
  const isFaulty = fault !== undefined && nowMs - fault.atMs < faultyMs;
  return { name, isPassed: !isFaulty, detail: isFaulty ? fault.error : "no failure in the last minute" };
}
