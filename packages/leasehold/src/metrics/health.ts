import type { MemberStatus } from "../flease/tcp/types.js";

/** One health check of a server, and its result. */
export interface Check {
  readonly name: string;
  readonly isPassed: boolean;
  /** What is wrong or, if the check passed, why it passed. */
  readonly detail: string;
}

/**
 * What a member needs in order to vote. None of it affects liveness: a restart would only begin the recovery
 * wait again.
 */
export function memberChecks(status: MemberStatus): Check[] {
  const { state, readyInMs, peers, notice } = status;
  const others = peers.filter(({ connected }) => connected).length;
  const majority = Math.floor((peers.length + 1) / 2) + 1;
  const seconds = Math.ceil(readyInMs / 1_000);
  const isMajority = others + 1 >= majority;
  return [
    {
      name: "clock",
      isPassed: state !== "clock-fault",
      detail:
        state === "clock-fault" ? (notice ?? "it contradicts the others' clocks") : "agrees with the others'",
    },
    {
      name: "twin",
      isPassed: state !== "twin",
      detail:
        state === "twin"
          ? (notice ?? "another process is the same member")
          : "no other process is this member",
    },
    {
      name: "membership",
      isPassed: state !== "learner",
      detail: state === "learner" ? (notice ?? "it is no member with a vote") : `view ${status.view}`,
    },
    {
      name: "majority",
      isPassed: isMajority,
      detail: `connected with ${others} of ${peers.length} other members`,
    },
    {
      name: "recovery",
      isPassed: readyInMs === 0,
      detail:
        readyInMs === 0 ? "over" : `its vote counts in ${seconds} s: leases it may have forgotten end first`,
    },
    { name: "vote", isPassed: state === "ready", detail: state },
  ];
}

/** The body of a response: the failed checks, or all checks with `isVerbose`. */
export function healthText(checks: readonly Check[], isVerbose: boolean): string {
  const isReady = checks.every(({ isPassed }) => isPassed);
  const shown = checks.filter(({ isPassed }) => isVerbose || !isPassed);
  const lines = shown.map(({ name, isPassed, detail }) => `[${isPassed ? "+" : "-"}] ${name}: ${detail}`);
  return [...lines, isReady ? "ok" : "not ready", ""].join("\n");
}
