import { majorityOf } from "../../common/majority.js";
import type { MemberReport, PeerStatus } from "../../flease/tcp/types.js";
import { shortTime } from "../output/present.js";
import type { Examination, Finding } from "./findings.js";
import { greatest } from "../../common/lists.js";

/** Clocks that are this near to the bound are next to break it. */
const skewPart = 0.5;

/** A lease should outlast so many round trips for its renewal to fail now and then. */
const tripsPerLease = 100;

/** What round trips and clocks of a cluster's members mean for its settings. */
export function examineMembers(reports: readonly MemberReport[], clocks: readonly Finding[]): Examination {
  const ready = reports.flatMap((report) =>
    report.reachable && report.status.state === "ready" ? [report.status] : [],
  );
  const findings: Finding[] = [...clocks];
  const isQuorate = ready.length >= majorityOf(reports.length);
  findings.push({ ok: isQuorate, text: `${ready.length} of ${reports.length} members are ready` });
  const [first] = ready;
  if (first === undefined) return { verdict: "unavailable", findings };
  const { maxClockSkewMs, ttlMaxMs } = first;
  const peers = ready.flatMap((status) => status.peers);
  const skewMs = greatestOf(peers, ({ skewMs, roundTripMs = 0 }) => Math.abs(skewMs ?? 0) + roundTripMs / 2);
  const clocksFit = skewMs <= skewPart * maxClockSkewMs;
  findings.push({
    ok: clocksFit,
    text: `clocks are apart by ${fine(skewMs)} at the most, and maxClockSkew is ${shortTime(maxClockSkewMs)}${clocksFit ? "" : ": look after the time servers, or raise it on all members"}`,
  });
  const tripMs = greatestOf(peers, ({ roundTripMs }) => roundTripMs ?? 0);
  const isLong = ttlMaxMs >= tripsPerLease * tripMs;
  findings.push({
    ok: isLong,
    text: `the slowest round trip takes ${fine(tripMs)}, and ttlMax is ${shortTime(ttlMaxMs)}${isLong ? "" : `: at least ${shortTime(tripsPerLease * tripMs)} is advised`}`,
  });
  const fits = clocksFit && isLong && clocks.length === 0;
  return { verdict: !isQuorate ? "unavailable" : fits ? "ok" : "unfit", findings };
}

function greatestOf(peers: readonly PeerStatus[], of: (peer: PeerStatus) => number): number {
  return greatest(peers.filter(({ connected }) => connected).map(of), 0);
}

function fine(ms: number): string {
  return ms < 10 ? `${ms.toFixed(2)} ms` : shortTime(ms);
}
