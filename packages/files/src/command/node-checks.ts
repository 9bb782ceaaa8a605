import type { DiskWait } from "../disk/disk-watch.js";
import type { FilesStatus } from "../types.js";

/** One check of a node and its result, for `/readyz`. */
export interface NodeCheck {
  readonly name: string;
  readonly isPassed: boolean;
  readonly detail: string;
}

/** Disk failures that the node survives, as its store last saw them. */
export interface DiskFault {
  /** On the steady clock, ms. */
  readonly atMs: number;
  readonly error: string;
}

/**
 * How long a disk counts as failed after a failure, ms. Reads and the scrub access it more often than this.
 */
export const faultyMs = 60_000;

/** How long a disk operation may run before the disk counts as hanging, ms. */
export const hangingMs = 10_000;

/**
 * The conditions for serving. A node that fails them still counts as alive: a restart would repair neither a
 * disk nor a lost majority.
 */
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
