import { greatest } from "../../common/lists.js";
import { majorityOf } from "../../common/majority.js";
import type { CertificateReport, ClockRate, CoreReport } from "../../etcd/core-report.js";
import type { Latencies } from "../../stores/measure.js";
import { shortTime } from "../output/present.js";
import { alarmsOf, answering, hasLeader, nameOf, voters } from "./core-status.js";
import type { Examination, Finding } from "./findings.js";

/** A server lags if it has at least this many committed entries that are not applied. */
const lagMax = 5_000n;

/** Renewals that a lease should outlast, so that some can fail. */
const renewalsPerLease = 100;

/** The fraction of the bound at which a clock difference causes a warning. */
const ratePart = 0.5;

/** etcd's advice for the 99th percentile, ms: slower syncs delay every write. */
const syncMsAdvised = 10;
/** The fraction of the election timeout at which slow writes endanger leadership. */
const syncPart = 0.25;

/** The fraction of the quota that causes a warning. */
const quotaPart = 0.8;

const dayMs = 86_400_000;
/** A certificate causes a warning this many days before its expiry, as renewal takes time. */
const expiresSoonDays = 30;
const expiresNowDays = 7;

/** Durations of acquiring and renewing a lease of this core, ms. */
export interface CoreMeasurement {
  readonly acquire: Latencies;
  readonly renew: Latencies;
}

/** Observations in addition to the servers' answers. */
export interface CoreSeen {
  /** Absent if no lease could be acquired, for this reason or because there is no leader. */
  readonly measured?: CoreMeasurement | undefined;
  readonly refusal?: string | undefined;
  readonly rates: readonly ClockRate[];
  readonly ttlMaxMs: number;
  readonly clockRateError: number;
  /** This command's own certificates. */
  readonly certificates: readonly CertificateReport[];
  /** System time, ms since 1970. */
  readonly nowMs: number;
  /** Findings about the time service of this machine. */
  readonly clocks: readonly Finding[];
}

const fault = (text: string): Finding => ({ ok: false, text });
const hint = (text: string): Finding => ({ ok: false, isHint: true, text });
const fine = (text: string): Finding => ({ ok: true, text });

/** Judges the servers' answers and the measurement for leases, with advice. */
export function examineCore(report: CoreReport, seen: CoreSeen): Examination {
  const findings = [
    ...silent(report),
    quorum(report),
    ...leadership(report),
    ...lagging(report),
    ...learners(report),
    ...space(report),
    ...versions(report),
    ...electionTimeouts(report),
    ...syncs(report),
    ...rates(report, seen),
    ...certificates(report, seen),
    ...renewals(seen),
    ...seen.clocks,
  ];
  const { servers, size } = report;
  const isWhole = answering(servers).length === servers.length && voters(servers).length >= size;
  const isUp = isWhole && hasLeader(report) && seen.measured !== undefined;
  const fits = findings.every(({ isHint, ok }) => ok || isHint === true);
  return { verdict: !isUp ? "unavailable" : fits ? "ok" : "unfit", findings };
}

function silent({ servers }: CoreReport): Finding[] {
  return servers.flatMap((server) => {
    if (server.reachable) return [];
    const who = server.name === undefined ? server.address : `${nameOf(server)} (${server.address})`;
    const gone =
      server.id === undefined
        ? "Start it, or look at the way there"
        : `Start it, or, if it is lost for good: etcdctl member remove ${server.id}, and add another`;
    return [fault(`${who} does not answer: ${server.reason}. ${gone}`)];
  });
}

function quorum({ servers, size }: CoreReport): Finding {
  const up = voters(servers).length;
  const spare = size - majorityOf(size);
  const text = `${up} of ${size} voting servers answer; ${majorityOf(size)} are needed, so ${spare} may be missing`;
  if (up < majorityOf(size))
    return fault(`${text}: start them; where they are lost for good, docs/core.md has --force-new-cluster`);
  return { ok: up === size, text };
}

function leadership(report: CoreReport): Finding[] {
  const { servers } = report;
  const up = answering(servers);
  const leader = up.find(({ isLeader }) => isLeader);
  if (!hasLeader(report)) {
    if (voters(servers).length < majorityOf(report.size)) return [];
    return [fault("no majority follows one leader: look whether the servers reach each other's peer URLs")];
  }
  const lost = up.filter((each) => each.leader === "");
  const cutOff = lost.map((each) =>
    fault(`${nameOf(each)} knows no leader: it answers us, and does not reach the others at their peer URLs`),
  );
  const unheard = (leader?.own?.followers ?? []).flatMap(({ heard, id, silentMs }) => {
    const follower = up.find((each) => each.id === id);
    if (heard || follower === undefined || lost.includes(follower)) return [];
    const since = silentMs === undefined ? "since it leads" : `for ${shortTime(silentMs)}`;
    return [
      fault(
        `${nameOf(leader!)}, which leads, has not heard ${nameOf(follower)} ${since}, and we do: look at the network between them`,
      ),
    ];
  });
  return [...cutOff, ...unheard];
}

function lagging({ servers }: CoreReport): Finding[] {
  const up = answering(servers);
  const followers = up.find(({ isLeader }) => isLeader)?.own?.followers ?? [];
  return up.flatMap((server) => {
    if (server.lag <= lagMax) return [];
    const gets = followers.find(({ id }) => id === server.id)?.getsSnapshot === true;
    const todo = gets
      ? "it is getting a snapshot: wait"
      : "look at its disk, its processor and its way to the leader";
    return [
      fault(
        `${nameOf(server)} lags: ${server.lag} entries are committed that it has not carried out: ${todo}`,
      ),
    ];
  });
}

function learners({ servers }: CoreReport): Finding[] {
  return answering(servers)
    .filter(({ isLearner }) => isLearner)
    .map((each) =>
      hint(`${nameOf(each)} learns and has no vote; to give it one: etcdctl member promote ${each.id}`),
    );
}

const whatToDo = [
  ["NOSPACE", ": writes are refused. Delete keys, compact, then etcdctl alarm disarm"],
  ["CORRUPT", ", and all changes are refused. Remove that server, and add it again with an empty directory"],
] as const;

function space(report: CoreReport): Finding[] {
  const alarms = alarmsOf(report).map((text) =>
    fault(`${text}${whatToDo.find(([alarm]) => text.includes(alarm))?.[1] ?? ""}`),
  );
  const full = answering(report.servers).flatMap((server) => {
    const { quotaBytes, stateBytes } = server.own ?? { quotaBytes: 0n, stateBytes: 0n };
    const part = quotaBytes === 0n ? 0 : Number(stateBytes) / Number(quotaBytes);
    if (part < quotaPart) return [];
    const text = `${nameOf(server)} has filled ${Math.round(part * 100)} % of its quota: delete keys, compact, or raise --quota-backend-bytes on all servers`;
    return [hint(text)];
  });
  return [...alarms, ...full];
}

function versions({ servers }: CoreReport): Finding[] {
  const found = new Set(answering(servers).map(({ own, version }) => own?.leaseholdVersion ?? version));
  return found.size < 2 ? [] : [hint(`the servers are of ${found.size} versions: ${[...found].join(", ")}`)];
}

/** Different timeouts are safe, but the duration of an election then depends on which servers are up. */
function electionTimeouts({ servers }: CoreReport): Finding[] {
  const found = new Set(answering(servers).flatMap(({ own }) => (own === undefined ? [] : [own.electionMs])));
  if (found.size < 2) return [];
  const times = [...found].map((ms) => shortTime(ms)).join(", ");
  return [
    hint(`the servers have several election timeouts (${times}): give all the same, one after another`),
  ];
}

function syncs({ servers }: CoreReport): Finding[] {
  const measured = answering(servers).flatMap((server) =>
    server.own === undefined || server.own.syncs.samples === 0 ? [] : [{ server, own: server.own }],
  );
  const slow = measured.flatMap(({ own: { electionMs, syncs: times }, server }) => {
    if (times.p99Ms <= syncMsAdvised) return [];
    const text = `${nameOf(server)} takes ${precise(times.p50Ms)} to write to its disk, 99 % within ${precise(times.p99Ms)} (${times.samples} times)`;
    return times.p99Ms > syncPart * electionMs
      ? [fault(`${text}, and the election timeout is ${shortTime(electionMs)}: give the log a faster disk`)]
      : [hint(`${text}: ${syncMsAdvised} ms are advised`)];
  });
  if (slow.length > 0 || measured.length === 0) return slow;
  const most = greatest(
    measured.map(({ own }) => own.syncs.p99Ms),
    0,
  );
  return [fine(`the servers' disks take at most ${precise(most)} for 99 % of the writes to the log`)];
}

/** The holder and the leader each time the lease by their own steady clock. */
function rates({ servers }: CoreReport, { clockRateError, rates: all }: CoreSeen): Finding[] {
  if (all.length === 0) return [];
  const allowed = ratePart * clockRateError;
  const wrong = all.flatMap(({ id, least, most }) => {
    // The certain part of the rate error, without the uncertainty of the round trip.
    const off = Math.max(least - 1, 1 - most, 0);
    if (off <= allowed) return [];
    const server = answering(servers).find((each) => each.id === id);
    const who = server === undefined ? id : nameOf(server);
    const how = least > 1 ? "faster" : "slower";
    return [
      fault(
        `the steady clock of ${who} runs ${percent(off)} ${how} than this machine's, and clockRateError is ${percent(clockRateError)}: look at the time services of both`,
      ),
    ];
  });
  if (wrong.length > 0) return wrong;
  const most = greatest(
    all.map((rate) => Math.max(Math.abs(rate.most - 1), Math.abs(rate.least - 1))),
    0,
  );
  return [
    fine(
      `steady clocks of servers and this machine run within ${percent(most)} of each other, as far as can be seen in this time; clockRateError is ${percent(clockRateError)}`,
    ),
  ];
}

function certificates({ servers }: CoreReport, { certificates: ours, nowMs }: CoreSeen): Finding[] {
  const ofServers = answering(servers).flatMap((server) =>
    (server.own?.certificates ?? []).map((each) => ({ ...each, who: nameOf(server) })),
  );
  const all = [...ours.map((each) => ({ ...each, who: "this machine" })), ...ofServers];
  return all.flatMap(({ authority, expiresMs, file, towards, who }) => {
    const days = (expiresMs - nowMs) / dayMs;
    if (days > expiresSoonDays) return [];
    const what = `${who}: ${authority ? "the authority" : "the certificate"} ${file}${towards === "" ? "" : `, towards ${towards},`}`;
    const date = new Date(expiresMs).toISOString().slice(0, 10);
    const when = days < 0 ? `expired on ${date}` : `expires in ${Math.floor(days)} days, on ${date}`;
    const todo = towards === "" ? "renew it" : "write a renewed one over it, which is used within 10 s";
    return [days < expiresNowDays ? fault(`${what} ${when}: ${todo}`) : hint(`${what} ${when}: ${todo}`)];
  });
}

function renewals({ measured, refusal, ttlMaxMs }: CoreSeen): Finding[] {
  if (measured === undefined)
    return refusal === undefined ? [] : [fault(`no lease could be had: ${refusal}`)];
  const { acquire, renew } = measured;
  const advisedMs = renewalsPerLease * renew.p99;
  const isLong = ttlMaxMs >= advisedMs;
  const advice = isLong ? "" : `: at least ${shortTime(advisedMs)} is advised`;
  return [
    fine(
      `a lease is acquired in ${precise(acquire.p50)}, 99 % within ${precise(acquire.p99)} (${acquire.samples} times)`,
    ),
    {
      ok: isLong,
      text: `a renewal takes ${precise(renew.p50)}, 99 % within ${precise(renew.p99)}, and ttlMax is ${shortTime(ttlMaxMs)}${advice}`,
    },
  ];
}

function precise(ms: number): string {
  return ms < 10 ? `${ms.toFixed(2)} ms` : shortTime(ms);
}

function percent(part: number): string {
  const value = part * 100;
  return `${value < 0.1 ? value.toFixed(3) : value < 1 ? value.toFixed(2) : value.toFixed(1)} %`;
}
