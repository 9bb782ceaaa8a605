/** What one server of a core says of itself, or why it does not. */
export type ServerReport = AnsweringServer | SilentServer;

export interface SilentServer {
  readonly address: string;
  readonly reachable: false;
  readonly reason: string;
  /** As the others know it: hexadecimal id, name, whether it has a vote. */
  readonly id?: string;
  readonly name?: string;
  readonly isLearner?: boolean;
}

export interface AnsweringServer {
  readonly address: string;
  readonly reachable: true;
  /** Hexadecimal, as etcd's tools show it. */
  readonly id: string;
  readonly name: string;
  /** Of etcd's API. */
  readonly version: string;
  readonly isLeader: boolean;
  /** It gets the log and has no vote. */
  readonly isLearner: boolean;
  /** The leader it knows; empty when it knows none. */
  readonly leader: string;
  readonly term: bigint;
  /** How far its log reaches, and how far it has been carried out. */
  readonly logIndex: bigint;
  readonly appliedIndex: bigint;
  /** So many entries that are committed, by what the servers said, it has not carried out. */
  readonly lag: bigint;
  /** On disk. */
  readonly dataBytes: bigint;
  /** The alarms that it knows of, as etcd writes them: `memberID:1 alarm:NOSPACE`. */
  readonly alarms: readonly string[];
  readonly roundTripMs: number;
  /** Absent of an etcd. */
  readonly own?: OwnReport;
}

/** What servers of Leasehold say beyond etcd's API. */
export interface OwnReport {
  readonly leaseholdVersion: string;
  readonly uptimeMs: number;
  readonly commitIndex: bigint;
  /** Keys, values, history and leases in memory, and how much of that is allowed. */
  readonly stateBytes: bigint;
  readonly quotaBytes: bigint;
  readonly heartbeatMs: number;
  readonly electionMs: number;
  /** How long the last writes to the log took until they were on disk. */
  readonly syncs: SyncTimes;
  /** The other servers, as the leader knows them; none of one that does not lead. */
  readonly followers: readonly KnownFollower[];
  readonly certificates: readonly CertificateReport[];
}

export interface SyncTimes {
  readonly samples: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}

export interface KnownFollower {
  readonly id: string;
  /** It was heard within an election timeout. */
  readonly heard: boolean;
  /** Absent: it never was. */
  readonly silentMs?: number;
  readonly getsSnapshot: boolean;
  readonly matchIndex: bigint;
}

export interface CertificateReport {
  /** Whom it is shown to, or whose certificates its authority vouches for: `clients` or `servers`. */
  readonly towards: string;
  readonly file: string;
  /** System time, ms since 1970. */
  readonly expiresMs: number;
  readonly authority: boolean;
}

/** A server's steady clock, between two looks at ours: all ms. */
export interface ClockReading {
  readonly thereMs: number;
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** The servers of one core. */
export interface CoreReport {
  /** Those that were asked for, in that order, and then those that they named. */
  readonly servers: readonly ServerReport[];
  /** So many servers vote, as one of them says; as many as were asked for, if none answers. */
  readonly size: number;
  /** By the servers' ids; of an etcd there is none. */
  readonly clocks: ReadonlyMap<string, ClockReading>;
}

/** How fast a server's steady clock ran against ours: between these, 1 being as fast. */
export interface ClockRate {
  readonly id: string;
  readonly least: number;
  readonly most: number;
}

/** The rates of those that answered both times, and have not been started anew in between. */
export function clockRates(before: CoreReport, after: CoreReport): ClockRate[] {
  const rates: ClockRate[] = [];
  for (const [id, to] of after.clocks) {
    const from = before.clocks.get(id);
    if (from === undefined || to.askedMs <= from.answeredMs || wasRestarted(id, before, after)) continue;
    const thereMs = to.thereMs - from.thereMs;
    const least = thereMs / (to.answeredMs - from.askedMs);
    rates.push({ id, least, most: thereMs / (to.askedMs - from.answeredMs) });
  }
  return rates;
}

/** Its steady clock may have begun anew with it. */
function wasRestarted(id: string, before: CoreReport, after: CoreReport): boolean {
  const uptimeIn = ({ servers }: CoreReport) =>
    servers.find((each): each is AnsweringServer => each.reachable && each.id === id)?.own?.uptimeMs ?? 0;
  return uptimeIn(after) < uptimeIn(before);
}
