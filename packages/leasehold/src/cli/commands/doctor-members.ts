import { majorityOf } from "../../common/majority.js";
import type { MemberReport, PeerStatus } from "../../flease/tcp/types.js";
import { shortTime } from "../output/present.js";
import type { Examination, Finding } from "./findings.js";
import { greatest } from "../../common/lists.js";

/** The fraction of the bound at which a clock difference causes a warning. */
const skewPart = 0.5;

/** Round trips that a lease should outlast, so that a renewal can fail now and then. */
const tripsPerLease = 100;

/**
 * A lease that outlasts fewer round trips is unreliable. Between the two limits the members may merely be
 * busy: the shortest recent round trip counts, but if every message waits, so did that one.
 */
const tripsPerLeaseMin = 10;

/** Judges the round trips and clocks of a cluster's members against its settings. */
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
  findings.push(clocksFinding(peers, maxClockSkewMs));
  findings.push(tripsFinding(peers, ttlMaxMs));
  const fits = findings.every(({ ok, isHint }) => ok || isHint === true);
  return { verdict: !isQuorate ? "unavailable" : fits ? "ok" : "unfit", findings };
}

function tripsFinding(peers: readonly PeerStatus[], ttlMaxMs: number): Finding {
  const tripMs = greatestOf(peers, ({ roundTripMs }) => roundTripMs ?? 0);
  const seen = `the slowest round trip takes ${fine(tripMs)}, and ttlMax is ${shortTime(ttlMaxMs)}`;
  const advised = `at least ${shortTime(tripsPerLease * tripMs)} is advised`;
  if (ttlMaxMs >= tripsPerLease * tripMs) return { ok: true, text: seen };
  if (ttlMaxMs < tripsPerLeaseMin * tripMs) return { ok: false, text: `${seen}: ${advised}` };
  const text = `${seen}: the machines may merely be busy. Ask again when they have less to do; where it stays so, ${advised}`;
  return { ok: false, isHint: true, text };
}

/** The certain part of the skew; the rest may be due to a delayed message. */
function clocksFinding(peers: readonly PeerStatus[], maxClockSkewMs: number): Finding {
  const boundMs = skewPart * maxClockSkewMs;
  const bound = `and maxClockSkew is ${shortTime(maxClockSkewMs)}`;
  const apart = (sign: 1 | -1) =>
    greatestOf(peers, ({ skewMs = 0, skewErrorMs = 0 }) => Math.abs(skewMs) + sign * skewErrorMs);
  const [mostMs, leastMs] = [apart(1), apart(-1)];
  if (mostMs <= boundMs)
    return { ok: true, text: `clocks are apart by ${fine(mostMs)} at the most, ${bound}` };
  if (leastMs > boundMs) {
    const advice = "look after the time servers, or raise it on all members";
    return { ok: false, text: `clocks are apart by at least ${fine(leastMs)}, ${bound}: ${advice}` };
  }
  const text = `clocks could not be measured well, as messages between members take long: they are apart by ${fine(mostMs)} at the most, ${bound}. Ask again when the machines have less to do`;
  return { ok: false, isHint: true, text };
}

function greatestOf(peers: readonly PeerStatus[], of: (peer: PeerStatus) => number): number {
  return greatest(peers.filter(({ connected }) => connected).map(of), 0);
}

function fine(ms: number): string {
  return ms < 10 ? `${ms.toFixed(2)} ms` : shortTime(ms);
}
