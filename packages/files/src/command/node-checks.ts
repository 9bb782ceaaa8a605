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

/** Conditions of a node's service. It is alive all the while: a restart repairs no disk and no majority. */
export function nodeChecks(
  { state, majority, peers, rebuilding }: FilesStatus,
  fault: DiskFault | undefined,
  nowMs: number,
): NodeCheck[] {
  const silent = peers.filter(({ reachable }) => !reachable).map(({ node }) => node);
  const isFaulty = fault !== undefined && nowMs - fault.atMs < faultyMs;
  const joined = state === "serving" || state === "rebuilding";
  return [
    { name: "disk", isPassed: !isFaulty, detail: isFaulty ? fault.error : "no failure in the last minute" },
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
